"""Whom an agent speaks to in its own words, in a group (F268); pure.

Only what the agent says itself counts: no code, no lines it quotes, nothing between
quotation marks, and not itself. As in words of people, a name begins after anything but
a word's character, so the @ of a mail address is no mention.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, Protocol

from actors.rules.agent_access import may_use
from actors.rules.markers import ends

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.collaboration_config import CollaborationConfig
    from actors.messages import Chain, Inbound
    from actors.rules.agent_access import AgentAccess
    from actors.rules.markers import Parsed

# Source: CommonMark 0.31.2, 4.5: three or more backticks or tildes open a fence, at
# least as many of the same close it; one that is not closed goes on to the end.
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)")
_TICKS = re.compile(r"`+")
_QUOTED = re.compile(r"\"[^\"\n]*\"|\u201c[^\u201d\n]*\u201d|\u00ab[^\u00bb\n]*\u00bb")

_MENTION = re.compile(r"(?<![\w@.])@([\w-]+)")

MOST_HOPS = 64
"""Names in a chain that grows in the open; far beyond what settings allow."""

LONGEST = 20_000
"""Characters of an answer that are looked at."""


class Speaker(Protocol):
    """Whoever speaks, as far as it matters here; a persona is one."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def everybody(self) -> tuple[str, ...]:
        """Names of all agents."""
        ...

    @property
    def silent(self) -> frozenset[str]:
        """Those of them that answer nothing in groups."""
        ...


def own_words(text: str) -> str:
    """Leave out what an agent shows or quotes; in proportion to the text's length."""
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
    """Leave out code spans, which end with as many backticks as they began with."""
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
    """Whether agents hear each other where a message was written."""
    if inbound.is_direct or not config.enabled:
        return False
    here = f"{inbound.address.connector}/{inbound.address.chat}"
    return config.visible or any(fnmatchcase(here, x) for x in config.visible_chats)


def there(inbound: Inbound, speaker: str, everybody: Iterable[str]) -> tuple[str, ...]:
    """Name the other agents of a chat; all, if its edge does not know who is there."""
    present = inbound.present
    return tuple(
        name
        for name in everybody
        if name != speaker and (not present or name in present)
    )


def addressed(text: str, speaker: str, known: Iterable[str]) -> tuple[str, ...]:
    """Name the agents that somebody speaks to.

    Args:
        text: what people see of the answer.
        speaker: whose it is.
        known: names of the agents that are there.

    Returns:
        Their names as the settings write them, in the order of the text, each once.
    """
    if "@" not in text:
        return ()
    by_name = {name.casefold(): name for name in known}
    found: dict[str, None] = {}
    for match in _MENTION.finditer(own_words(text[:LONGEST])):
        word = match[1].casefold()
        # A dash after a name ends a clause more often than it belongs to a name.
        name = by_name.get(word) or by_name.get(word.rstrip("-"))
        if name is not None and name != speaker:
            found[name] = None
    return tuple(found)


def heard_by(
    parsed: Parsed,
    inbound: Inbound,
    speaker: Speaker,
    config: CollaborationConfig,
    access: AgentAccess,
) -> tuple[str, ...]:
    """Name the agents that hear an answer because their names are called in it.

    Args:
        parsed: the answer, taken apart.
        inbound: what it answers.
        speaker: whose it is.
        config: whether agents hear each other at all.
        access: whom the person that it goes back to may use.
    """
    if not is_in_the_open(inbound, config) or any(map(ends, parsed.controls)):
        return ()
    others = there(inbound, speaker.name, speaker.everybody)
    called = addressed(parsed.visible, speaker.name, others)
    hearing = (x for x in called if x not in speaker.silent)
    return tuple(x for x in hearing if may_use(x, inbound, access).may)


def may_speak(
    chain: Chain, config: CollaborationConfig, now: float
) -> Literal["ok", "visible_max_turns", "deadline"]:
    """Say whether one more agent may be made to answer in the open.

    Args:
        chain: of the message whose answer calls it.
        config: how many turns there are.
        now: Unix seconds.
    """
    if chain.deadline and now >= chain.deadline:
        return "deadline"
    is_over = chain.turns >= config.visible_max_turns
    return "visible_max_turns" if is_over or len(chain.agents) >= MOST_HOPS else "ok"
