"""Which agents an agent addresses in its own answer in a group. Pure.

Only the agent's own prose counts: no code, no quoted lines, nothing in quotation marks,
and not its own name. As in people's messages, the @ of a mail address is no mention.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

from actors.rules.groups.access import AgentAccess, may_use
from actors.rules.groups.mentions import named
from actors.rules.markers.parser import ParsedAnswer, ends

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from actors.agents.persona import Persona
    from actors.config.collaboration import CollaborationConfig
    from actors.messages.inbound import DelegationChain, Inbound

# Source: CommonMark 0.31.2, 4.5: three or more backticks or tildes open a fence, at
# least as many of the same close it; one that is not closed goes on to the end.
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)")
_TICKS = re.compile(r"`+")
_QUOTED = re.compile(r"\"[^\"\n]*\"|\u201c[^\u201d\n]*\u201d|\u00ab[^\u00bb\n]*\u00bb")

_MENTION = re.compile(r"(?<![\w@.])@([\w-]+)(?=([^\x00-\u02ff])?)")

MOST_HOPS = 64
"""Longest chain of visible turns, in names; far beyond what settings allow."""

LONGEST = 20_000
"""Most characters of an answer that are searched."""


def own_words(text: str) -> str:
    """Remove code and quotations from a text, in linear time."""
    told: list[str] = []
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        mark = found[1] if found else ""
        if fence:
            is_end = mark.startswith(fence) and found and not found[2].strip("`~ \t")
            fence = "" if is_end else fence
        elif mark:
            fence = mark
        elif not line.lstrip(" \t").startswith(">"):
            told.append(line)
    return _QUOTED.sub(" ", without_spans("\n".join(told)))


def without_spans(text: str) -> str:
    """Remove code spans, which end with as many backticks as they began with."""
    runs = list(_TICKS.finditer(text))
    later: dict[int, list[int]] = {}
    for number in range(len(runs) - 1, -1, -1):
        later.setdefault(len(runs[number][0]), []).append(number)
    told: list[str] = []
    at, number = 0, 0
    while number < len(runs):
        same = later[len(runs[number][0])]
        while same and same[-1] <= number:
            same.pop()
        if not same:
            number += 1
            continue
        told.append(text[at : runs[number].start()])
        at = runs[same[-1]].end()
        number = same[-1] + 1
    return " ".join((*told, text[at:]))


def is_in_the_open(inbound: Inbound, config: CollaborationConfig) -> bool:
    """Return whether agents hear each other in the chat of a message."""
    if inbound.is_direct or not config.enabled:
        return False
    here = f"{inbound.address.connector}/{inbound.address.chat}"
    return config.visible or any(fnmatchcase(here, x) for x in config.visible_chats)


def there(inbound: Inbound, speaker: str, everybody: Iterable[str]) -> tuple[str, ...]:
    """Return the other agents in a chat; all if its members are unknown."""
    present = inbound.present
    return tuple(
        name
        for name in everybody
        if name != speaker and (not present or name in present)
    )


def addressed(
    text: str, speaker: str, known: Iterable[str], called: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the agents that a text addresses, by their names or display names.

    Args:
        text: the answer as people see it.
        known: names of the agents in the chat.
        called: names of agents by all that they are called, case-folded.

    Returns:
        Their names as the settings write them, in the order of the text, each once.
    """
    if "@" not in text:
        return ()
    by_name = {name.casefold(): name for name in known}
    by_name = {word: x for word, x in called.items() if x in known} | by_name
    mentions = _MENTION.finditer(own_words(text[:LONGEST]))
    return tuple(x for x in named(mentions, by_name) if x != speaker)


def heard_by(
    parsed: ParsedAnswer,
    inbound: Inbound,
    speaker: Persona,
    config: CollaborationConfig,
    access: AgentAccess,
) -> tuple[str, ...]:
    """Return the agents that hear an answer because it addresses them."""
    if not is_in_the_open(inbound, config) or any(map(ends, parsed.controls)):
        return ()
    others = there(inbound, speaker.name, speaker.everybody)
    called = addressed(parsed.visible, speaker.name, others, speaker.called)
    hearing = (x for x in called if x not in speaker.silent)
    return tuple(x for x in hearing if may_use(x, inbound, access).may)


def may_speak(
    chain: DelegationChain, now: float, *, has_turns: bool
) -> Literal["ok", "visible_max_turns", "deadline"]:
    """Return whether one more visible turn is allowed.

    Args:
        now: monotonic seconds.
        has_turns: whether any are left for it.
    """
    if chain.deadline and now >= chain.deadline:
        return "deadline"
    is_over = not has_turns or len(chain.agents) >= MOST_HOPS
    return "visible_max_turns" if is_over else "ok"
