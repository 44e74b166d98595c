"""What comes of the marks in an answer, and is stored with it."""

from __future__ import annotations

import msgspec

from actors.messages import SentFile
from actors.rules.busy_policies import Chosen
from actors.rules.confirming import ENGLISH, Outcome, confirm
from actors.rules.voice import Translate, Translated, english
from runtime.entries import Entry
from runtime.fact_rows import FactChange
from runtime.rows import Record


class Plan(msgspec.Struct, frozen=True):
    """What an agent has decided to do by itself."""

    text: str
    """As whoever carries it out reads it."""

    tokens: int
    """What that may take; 0: no limit."""


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """Rows for the one commit that carries the answer, and what to say of them.

    An answer that is stopped, or never stored, has changed nothing.
    """

    facts: tuple[FactChange, ...] = ()
    """What is remembered, and what is forgotten."""

    entries: tuple[Entry, ...] = ()
    records: tuple[Record, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    """For people, should it be stored (F259)."""

    made: dict[str, str] = {}
    """Agents that are there then: their names, and what to come to each for."""

    files: tuple[SentFile, ...] = ()
    """What goes out with it."""

    hires: bool = False
    """Whether some of the entries are agents or clients, which `staff` waits for."""

    appointments: tuple[str, ...] = ()
    """Ids of the entries that the scheduler waits for."""

    ends: bool = False
    """Whether the conversation is over with it (F126)."""

    policy: Chosen = ""
    """What a person chose that is done with messages that come meanwhile (B1)."""

    plan: Plan | None = None
    """Carried out as a message of its own, which the answer's commit accepts."""


NOTHING = Carried()


def joined(parts: list[Carried]) -> Carried:
    """Put together what came of each family of marks, in order."""
    made: dict[str, str] = {}
    for part in parts:
        made |= part.made
    return Carried(
        facts=tuple(row for part in parts for row in part.facts),
        entries=tuple(row for part in parts for row in part.entries),
        records=tuple(row for part in parts for row in part.records),
        outcomes=tuple(each for part in parts for each in part.outcomes),
        made=made,
        hires=any(part.hires for part in parts),
        appointments=tuple(each for part in parts for each in part.appointments),
        ends=any(part.ends for part in parts),
        files=tuple(each for part in parts for each in part.files),
    )


def told(
    carried: Carried, say: Translate = english, retell: Translate = english
) -> list[str]:
    """Say to people what comes of it, from what is stored with it (F259).

    Args:
        carried: what comes of it.
        say: gives the runtime's words in the language of whoever reads it.
        retell: tells the runtime's reasons in that language.
    """

    def translate(key: str, /, **values: str | int) -> str:
        if why := values.get("why"):
            values = {**values, "why": retell(str(why))}
        return say(ENGLISH[key]).format_map(values)

    text = confirm(carried.outcomes, translate)
    return [Translated(text)] if text else []
