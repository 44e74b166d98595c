"""A whole request, held against the model's window: prompt, tools, history; pure.

What gives way, in this order: the layers of the prompt that may shrink (`SHRINKING`),
until what is kept free for the answer is free; then the oldest turns of the
history, whole, so that all of it is at most the window without a sixteenth. The newest
turn with its question, what the turn has added since, the tools, and the layers that
are never cut stay, whatever their length: if they alone are too long, the provider
says so.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import msgspec

from actors.messages import ModelRequest
from actors.rules import prompt
from actors.rules.fitting import estimate
from actors.rules.prompt import Prompt
from actors.rules.transcript import turn_starts

if TYPE_CHECKING:
    from actors.prompt_config import ContextConfig
    from actors.rules.briefing import Brief


# Chosen: the rest of what is kept free is there for it: without a summary nothing is
# given up that the model may still take. So much is estimated wrongly, and answered.
LEAST_FREE = 16
"""The part of the window, one in so many, that stays free whatever is kept."""


class Whole(msgspec.Struct, frozen=True):
    """What is sent."""

    request: ModelRequest
    """Without its prompt; of its lines the oldest may be gone."""

    prompt: Prompt
    cut: int = 0
    """How many lines are gone."""

    cut_tokens: int = 0
    """Of these, estimated."""

    @property
    def others(self) -> int:
        """Tokens of all but the prompt, estimated."""
        return estimate(self.request).input_tokens


def most_tokens(context: ContextConfig) -> int:
    """Say how many tokens all of a request may have."""
    return context.window_tokens - context.window_tokens // LEAST_FREE


def fitted(brief: Brief, request: ModelRequest, history: int) -> Whole:
    """Make a request fit into the agent's window, as far as that can be.

    Args:
        brief: what the prompt is made from.
        request: all but that.
        history: how many of its lines, from the first one, are the conversation and
            the question; of these the newest turn stays.
    """
    room = prompt.tokens_for(brief.context, 0)
    others = estimate(request).input_tokens
    told = prompt.build(brief, max(room - others, 0))
    most = most_tokens(brief.context)
    if told.tokens + others <= most:
        return Whole(request, told)
    least = prompt.build(brief, 0).tokens  # what is never cut
    starts = turn_starts(request.lines[:history])

    def is_small(start: int) -> bool:
        rest = msgspec.structs.replace(request, lines=request.lines[start:])
        return least + estimate(rest).input_tokens <= most

    # The later it starts, the smaller it is.
    first = bisect_left(starts, 1, key=is_small)
    start = starts[min(first, len(starts) - 1)]
    rest = msgspec.structs.replace(request, lines=request.lines[start:])
    left = estimate(rest).input_tokens
    known = msgspec.structs.replace(brief, left_out=brief.left_out + start)
    told = prompt.build(known, max(room - left, 0))
    return Whole(rest, told, start, others - left)
