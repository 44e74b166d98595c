"""What an answer's markers asked for: rows that are stored with the answer."""

from __future__ import annotations

import msgspec

from actors.messages.busy_policies import Chosen
from actors.messages.inbound import SentFile
from actors.rules.markers.outcomes import ENGLISH, ActionOutcome, confirm
from actors.rules.text.translations import Translate, Translated, english
from runtime.store.facts import FactChange
from runtime.store.rows import Entry, Record


class AgentPlan(msgspec.Struct, frozen=True):
    """A task that an agent gives itself."""

    text: str
    """The task."""

    tokens: int
    """Most tokens it may take; 0: no limit."""


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """Rows for the commit of an answer, and what to tell people about them.

    An answer that is stopped, or never stored, has changed nothing.
    """

    facts: tuple[FactChange, ...] = ()
    """Facts to remember and to forget."""

    entries: tuple[Entry, ...] = ()
    records: tuple[Record, ...] = ()
    outcomes: tuple[ActionOutcome, ...] = ()
    """For people, once it is stored."""

    made: dict[str, str] = {}
    """New agents: their names, and what each is for."""

    files: tuple[SentFile, ...] = ()
    """Files that are sent with it."""

    hires: bool = False
    """Whether some of the entries are agents or clients, which `staff` waits for."""

    appointments: tuple[str, ...] = ()
    """Ids of the entries that the scheduler waits for."""

    ends: bool = False
    """Whether the conversation ends with it."""

    policy: Chosen = ""
    """The busy policy that a person chose."""

    plan: AgentPlan | None = None
    """Becomes a message of its own, which the answer's commit accepts."""


NOTHING = Carried()


def joined(parts: list[Carried]) -> Carried:
    """Join the results of all marker families, in order."""
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
    """Say to people what was carried out."""

    def translate(key: str, /, **values: str | int) -> str:
        if why := values.get("why"):
            values = {**values, "why": retell(str(why))}
        return say(ENGLISH[key]).format_map(values)

    text = confirm(carried.outcomes, translate)
    return [Translated(text)] if text else []
