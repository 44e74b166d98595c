"""The appointments of one person or group while an answer changes them; pure.

Keeps what the settings allow, and says why not. `requests.py` and `scheduler.py` make
the requests; `messages.py` carries them out one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo

import msgspec

from actors.config.schedule import SchedulerConfig
from actors.messages.inbound import Address
from actors.rules.markers.outcomes import ActionOutcome
from actors.rules.text.durations import in_words
from actors.schedule import recurrence
from actors.schedule.appointments import Appointment, Kind

MOST_TEXT = 2_000
"""Characters of what an appointment is to say or do."""


class RequestOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """The chat and person that a request for an appointment comes from."""

    scope: str
    """Whose appointments are meant, as `rules/scopes.writing` gives it: a person's in a
    direct chat, in a group all that were set there. The owner of the rows."""

    person: str
    """Who asked, over all accounts; `connector/sender_id` unless they are linked."""

    agent: str
    address: Address
    is_direct: bool = True
    platform: str = ""
    sender_id: str
    sender_name: str = ""
    zone: str = "UTC"
    """By whose clocks times without a zone are meant."""

    agents: tuple[str, ...] = ()
    """Who else there is, for a conductor."""


class AppointmentCounts(msgspec.Struct, frozen=True):
    """How many appointments exist already."""

    of_person: int = 0
    """The asking person's appointments."""

    of_agents: dict[str, int] = {}
    """By the agent's name."""


class AppointmentBook(msgspec.Struct):
    """The appointments that exist, and the changes to them.

    Args:
        zone: the one that `origin.zone` names.
        kept: the appointments of this origin's scope, by id.
        now: Unix seconds.
        new_id: makes ids.
        is_open: whether the chat can be spoken to without having been asked.
    """

    origin: RequestOrigin
    zone: tzinfo
    kept: dict[str, Appointment]
    counts: AppointmentCounts
    config: SchedulerConfig
    now: float
    new_id: Callable[[], str]
    is_open: bool = True
    changed: dict[str, Appointment | None] = msgspec.field(
        default_factory=dict[str, "Appointment | None"]
    )
    """By id what is to be stored; None: it is to go."""

    made: int = 0

    def new(
        self, kind: Kind, text: str, repeat: str, due: float, agent: str = ""
    ) -> Appointment:
        """Make what somebody wants; nothing is kept yet."""
        origin = self.origin
        return Appointment(
            kind=kind,
            agent=agent or origin.agent,
            address=origin.address,
            is_direct=origin.is_direct,
            platform=origin.platform,
            sender_id=origin.sender_id,
            sender_name=origin.sender_name,
            person=origin.person,
            text=text,
            repeat=repeat,
            zone=origin.zone,
            anchor=due,
            created_at=self.now,
        )

    def set(
        self, name: str, it: Appointment, *, keeps_due: bool = False
    ) -> ActionOutcome:
        """Keep an appointment if the settings allow it."""
        is_new = name not in self.kept
        why = self._why_not(it, is_new=is_new)
        if why:
            return refused(what_of(it), why)
        if not keeps_due:
            due = self._first(it)
            if due is None:
                return refused(what_of(it), "that time never comes")
            it = msgspec.structs.replace(it, next_due=due)
        self.made += is_new
        self.keep(name, it)
        when = in_words(it.next_due, self.zone, it.zone) if it.next_due else ""
        return ActionOutcome(
            kind="scheduled",
            what=what_of(it),
            when=when,
            repeat=recurrence.repeat_shown(it.repeat),
        )

    def _first(self, it: Appointment) -> float | None:
        """Give the first slot from now on; 0 for a heartbeat without a purpose."""
        if it.kind == "heartbeat" and not (it.items or it.text or it.by_settings):
            return 0.0
        start = max(self.now, it.anchor - 1) if it.repeat else it.anchor - 1
        return it.rule(self.zone).next_after(start)

    def keep(self, name: str, it: Appointment) -> None:
        """Keep an appointment as it is."""
        self.kept[name] = self.changed[name] = it

    def _why_not(self, it: Appointment, *, is_new: bool) -> str:
        config = self.config
        rule = it.rule(self.zone)
        most, shortest = MOST_TEXT, config.shortest_period
        why = ""
        if not config.is_on:
            why = "nothing is carried out later here"
        elif not self.is_open:
            why = "nobody could be told here later; ask in a chat"
        elif len(it.text) + sum(map(len, it.items)) > most:
            why = f"it is longer than {most} characters"
        elif it.repeat and recurrence.too_often(rule, self.now, shortest):
            why = f"it must not repeat within {shortest:g} seconds"
        return why or (self._too_many(it) if is_new else "")

    def _too_many(self, it: Appointment) -> str:
        config, counts = self.config, self.counts
        if counts.of_person + self.made >= config.most_per_person:
            return f"{config.most_per_person} for one person are the most; cancel some"
        if counts.of_agents.get(it.agent, 0) + self.made >= config.most_per_agent:
            return f"{config.most_per_agent} for one agent are the most"
        return ""

    def agent(self, name: str) -> str | None:
        """Give an agent's name as the settings write it; None: there is none."""
        everyone = (self.origin.agent, *self.origin.agents)
        wanted = name.casefold() or self.origin.agent.casefold()
        return next((x for x in everyone if x.casefold() == wanted), None)


def refused(what: str, why: str) -> ActionOutcome:
    """Say that a wish comes to nothing."""
    return ActionOutcome(kind="refused", what=what, why=why)


def what_of(it: Appointment) -> str:
    """Name an appointment for people."""
    return it.text or ", ".join(it.items) or it.kind
