"""What people can set about an agent's prompt: which layers it has, how long each is.

Only shapes, bounds and defaults, as in `config.py`; `rules/prompt.py` builds by it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

GateName = Literal["scheduling", "recall", "outcomes", "projects", "profile", "meta"]
"""Subjects whose layers may be left out of a prompt when nobody speaks of them."""

Tokens = Annotated[int, Meta(ge=0, le=1_000_000)]


class LayerBudgets(Struct, frozen=True, forbid_unknown_fields=True):
    """Most tokens of each layer, at 4 characters each; 0 leaves a layer out.

    Sticky facts have no budget: they are never cut.
    """

    file: Tokens = 10_000
    """Each file of the persona's folder."""

    logs: Tokens = 1_500
    """What was noted of the last days."""

    prompt: Tokens = 10_000
    """What the settings say."""

    tools: Tokens = 1_000
    """How to use the tools, all groups together."""

    marks: Tokens = 500
    """Which marks its text may hold, with an example of each."""

    skills: Tokens = 2_000
    """Which skills there are."""

    notes: Tokens = 17_000
    """Texts of the skills that a message calls for, and what servers of tools say."""

    project: Tokens = 3_000
    """What the operator wrote of the project that people are working on."""

    profile: Tokens = 500
    """What is known of the person."""

    lessons: Tokens = 500
    """Rules that were learnt."""

    outcomes: Tokens = 500
    """What went well or badly lately."""

    tasks: Tokens = 500
    """What is still to be done."""

    states: Tokens = 500
    """Keys and values that the agent keeps."""

    summaries: Tokens = 3_000
    """What was said earlier, in short."""

    overheard: Tokens = 4_000
    """What others said in a group since the agent last answered there; whole messages,
    the newest."""

    facts: Tokens = 1_000
    """What is known that goes with the message."""


class ContextConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What an agent's model is told before it hears a message."""

    window_tokens: Annotated[int, Meta(ge=1_000, le=10_000_000)] = 128_000
    """Tokens that the model takes at once, question and answer together. All that it is
    told is held against them: layers are shortened first, then the oldest turns are
    left out."""

    reserve_tokens: Tokens = 20_000
    """Of these, tokens kept free for the answer and for what is estimated wrongly; of
    a small window a quarter, if that is less."""

    humaniser: bool = False
    """Whether it is told to write as people do in a chat."""

    time_zone: str = "UTC"
    """In which it is told date and time: `UTC`, `Europe/Berlin`, …"""

    language: str = ""
    """In which it answers, as `German`; empty: in that of whoever writes."""

    injection: Literal["off", "mark", "refuse"] = "mark"
    """What is done about words of people that try to change its instructions: nothing;
    their marks are broken and they are marked; such a message is not answered."""

    gates: tuple[GateName, ...] = ()
    """Subjects whose layers are there only when a message has one of their words."""

    gate_words: dict[GateName, tuple[str, ...]] = {}
    """Further words of these subjects, beside those known in English, Spanish, German
    and Korean."""

    max_facts: Annotated[int, Meta(ge=0, le=100)] = 4
    """Facts that go with a message."""

    max_summaries: Annotated[int, Meta(ge=0, le=100)] = 3
    """Summaries of what was said earlier, newest kept."""

    used_tools: bool = False
    """Whether the history keeps `[Used tools: a, b]` before an answer."""

    budgets: LayerBudgets = field(default_factory=LayerBudgets)
