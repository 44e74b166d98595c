"""Settings of an agent's prompt: its layers and their token budgets.

Only types, bounds and defaults; `actors/rules/prompt/build.py` uses them.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

GateName = Literal["scheduling", "recall", "outcomes", "projects", "profile", "meta"]
"""Subjects whose layers may be left out when a message does not mention them."""

Tokens = Annotated[int, Meta(ge=0, le=1_000_000)]


class LayerBudgets(Struct, frozen=True, forbid_unknown_fields=True):
    """Most tokens of each layer, at 4 characters each; 0 leaves a layer out.

    Sticky facts have no budget: they are never cut.
    """

    file: Tokens = 10_000
    """Each file of the persona's folder."""

    logs: Tokens = 1_500
    """Daily logs of the last days."""

    prompt: Tokens = 10_000
    """The prompt in the settings."""

    tools: Tokens = 1_000
    """Instructions for tools, all groups together."""

    marks: Tokens = 500
    """Instructions for inline directives, with an example of each."""

    skills: Tokens = 2_000
    """The list of skills."""

    notes: Tokens = 17_000
    """Texts of triggered skills, and notes of tool servers."""

    project: Tokens = 3_000
    """The operator's text about the active project."""

    profile: Tokens = 500
    """Facts about the person."""

    lessons: Tokens = 500
    """Lessons."""

    outcomes: Tokens = 500
    """Recent rewards and failures."""

    tasks: Tokens = 500
    """Open tasks."""

    states: Tokens = 500
    """States: keys and values that the agent keeps."""

    summaries: Tokens = 3_000
    """Summaries of earlier conversation."""

    overheard: Tokens = 4_000
    """Overheard messages of a group since the agent's last answer; whole messages, the
    newest.
    """

    facts: Tokens = 1_000
    """Facts that are relevant to the message."""


class ContextConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What an agent's model reads before the message."""

    window_tokens: Annotated[int, Meta(ge=1_000, le=10_000_000)] = 128_000
    """The model's context window in tokens, question and answer together. If a request
    is too long, layers are shortened first and then the oldest turns are left out.
    """

    reserve_tokens: Tokens = 20_000
    """Tokens of the window that are reserved for the answer and for estimation errors;
    at most a quarter of the window.
    """

    humaniser: bool = False
    """Whether the prompt asks it to write as people do in a chat."""

    time_zone: str = "UTC"
    """Time zone of the date and time in the prompt: `UTC`, `Europe/Berlin`, …"""

    language: str = ""
    """Language of its answers, such as `German`; empty: the language of the person."""

    injection: Literal["off", "mark", "refuse"] = "mark"
    """What to do about messages that try to change its instructions: nothing (`off`);
    defuse and mark them (`mark`); do not answer them (`refuse`).
    """

    gates: tuple[GateName, ...] = ()
    """Subjects whose layers are included only when a message has one of their words."""

    gate_words: dict[GateName, tuple[str, ...]] = {}
    """Further words of these subjects, beside the built-in English, Spanish, German and
    Korean ones.
    """

    used_tools: bool = False
    """Whether the history keeps `[Used tools: a, b]` before an answer."""

    budgets: LayerBudgets = field(default_factory=LayerBudgets)
