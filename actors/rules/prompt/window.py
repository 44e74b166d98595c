"""Fits a whole request (prompt, tools, history) into the model's window. Pure.

First the layers in `SHRINKING` shrink until the reserve for the answer is free. Then
the oldest whole turns of the history are dropped until the request leaves a sixteenth
of the window free. The newest turn with its question, its tool calls, the tools and the
fixed layers always stay; if they alone are too long, the provider refuses the request.
"""

from __future__ import annotations

from bisect import bisect_left

import msgspec

from actors.config.prompt import ContextConfig
from actors.messages.inbound import ModelRequest
from actors.rules.prompt import build as prompt
from actors.rules.prompt.brief import Brief
from actors.rules.prompt.build import Prompt
from actors.rules.prompt.estimate import estimate
from actors.rules.prompt.transcript import turn_starts

# Chosen: estimates are wrong by as much, and the answer needs room. The rest of the
# reserve is used before history is dropped without a summary.
LEAST_FREE = 16
"""Share of the window that always stays free, as its divisor."""


class Whole(msgspec.Struct, frozen=True):
    """The fitted request."""

    request: ModelRequest
    """The request without its prompt, possibly without its oldest lines."""

    prompt: Prompt
    cut: int = 0
    """Number of dropped lines."""

    cut_tokens: int = 0
    """Estimated tokens of the dropped lines."""

    @property
    def others(self) -> int:
        """Estimated tokens of everything but the prompt."""
        return estimate(self.request).input_tokens


def most_tokens(context: ContextConfig) -> int:
    """Return the token limit of a whole request."""
    return context.window_tokens - context.window_tokens // LEAST_FREE


def fitted(brief: Brief, request: ModelRequest, history: int) -> Whole:
    """Fit a request into the agent's window, as far as possible.

    Args:
        request: the request without its prompt.
        history: number of its first lines that are the conversation and the question;
            the newest turn of these stays.
    """
    room = prompt.tokens_for(brief.context, 0)
    others = estimate(request).input_tokens
    brief = msgspec.structs.replace(brief, said=_said(request))
    told = prompt.build(brief, max(room - others, 0))
    most = most_tokens(brief.context)
    if told.tokens + others <= most:
        return Whole(request, told)
    least = prompt.build(brief, 0).tokens  # what is never cut
    starts = turn_starts(request.lines[:history])

    def is_small(start: int) -> bool:
        rest = msgspec.structs.replace(request, lines=request.lines[start:])
        return least + estimate(rest).input_tokens <= most

    # A later start gives a smaller request.
    first = bisect_left(starts, 1, key=is_small)
    start = starts[min(first, len(starts) - 1)]
    rest = msgspec.structs.replace(request, lines=request.lines[start:])
    left = estimate(rest).input_tokens
    known = msgspec.structs.replace(
        brief, left_out=brief.left_out + start, said=_said(rest)
    )
    told = prompt.build(known, max(room - left, 0))
    return Whole(rest, told, start, others - left)


def _said(request: ModelRequest) -> tuple[str, ...]:
    return tuple([line.text for line in request.lines if line.role == "user"])
