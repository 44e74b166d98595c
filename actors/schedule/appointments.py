"""Appointments, and which of their slots are due; pure.

An appointment's *slot* is one time at which it is due. Each slot is carried out once,
or skipped with a reason, however the clock jumps and whenever the program stands: the
name of a slot, `<id>@<seconds>`, is the key under which it is accepted, and the same
transaction moves the appointment on to its next slot. Appointments of the settings have
the same ids in every process, so what is known of them (how often they were carried
out, that somebody paused them) outlives a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import tzinfo
from hashlib import sha256
from math import floor
from typing import Literal

import msgspec

from actors.messages.inbound import Address
from actors.schedule.recurrence import RecurrenceRule

Kind = Literal["reminder", "task", "cron", "heartbeat", "autonomous"]
"""Something is said; an agent does something; the same, set up by a conductor; an
agent looks whether there is anything to do; it decides what that is."""

OF_NOW: frozenset[Kind] = frozenset({"heartbeat", "autonomous"})
"""What is about how things stand now, and never made up for."""

CatchUp = Literal["skip", "once", "all"]
Skip = Literal["missed", "busy", "empty", "again", "quiet", "tokens", "unread"]
"""Why a slot is not carried out: nobody was there at its time; the one before is not
done yet, or its agent has other things to do; there is nothing on the list; it was
carried out before; it fell into quiet hours; its agent has used up the day's tokens;
its list cannot be read."""

Previous = Literal["none", "open", "done", "failed"]
"""What became of the slot before."""

PLAN = ":plan"
"""Ends the name of what an agent has decided to do in a slot."""

WENT_BACK = 60.0
"""Seconds that a clock may go back by without anything being reckoned anew."""


class Appointment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that is to happen later, once or repeatedly."""

    kind: Kind
    agent: str
    """Who says or does it."""

    address: Address
    """The chat it was set in, and will be heard in; never changes."""

    is_direct: bool = True
    platform: str = ""
    sender_id: str
    """Who had it set; on whose behalf it happens."""

    sender_name: str = ""
    person: str = ""
    """Who that is, over all accounts."""

    text: str = ""
    items: tuple[str, ...] = ()
    """What a heartbeat looks after."""

    repeat: str = ""
    """A rule as `recurrence.py` reads it; empty: once."""

    zone: str = "UTC"
    """By whose clocks."""

    anchor: float
    """Unix seconds of the first slot, or where the rule counts from."""

    next_due: float = 0.0
    """Unix seconds of the next slot; 0: there is none."""

    run_at: float = 0.0
    """Unix seconds of a slot beside the rule, set by hand; 0: there is none."""

    last_due: float = 0.0
    """The slot that was carried out last, until it is known how it ended."""

    last_parts: int = 1
    """As how many messages that was; see `part_name`."""

    by_settings: str = ""
    """The rule that the settings gave it last; empty: they know nothing of it."""

    fired: int = 0
    skipped: int = 0
    failures: int = 0
    """Slots that failed, one after the other."""

    paused: str = ""
    """Why it rests (`by hand`, `failures`); empty: it does not."""

    created_at: float = 0.0

    tokens: int = 0
    """What one run may take, read and written; 0: no limit of its own."""

    def rule(self, zone: tzinfo) -> RecurrenceRule:
        """Give the rule of its slots."""
        return RecurrenceRule(self.repeat, self.anchor, zone)

    @property
    def wakes(self) -> float:
        """Unix seconds at which to look at it; 0: never."""
        dues = [self.run_at, 0.0 if self.paused else self.next_due]
        return min((due for due in dues if due), default=0.0)


class SlotPolicy(msgspec.Struct, frozen=True):
    """What the settings say of missed and failed slots."""

    catch_up: CatchUp
    catch_up_most: int
    """Slots that are made up for with `all`."""

    late_within: float
    """Seconds: a slot that is late by no more than that was not missed."""

    most_failures: int
    """After so many slots that failed in a row it is paused; 0: never."""


class Obstacles(msgspec.Struct, frozen=True):
    """What keeps due slots from being carried out; never those set by hand."""

    reason: Skip
    until: float = 0.0
    """Unix seconds to which they are put off, as one; 0: they are skipped."""


class DueOutcome(msgspec.Struct, frozen=True):
    """What is to be done about an appointment that is due."""

    slots: tuple[float, ...]
    """Carry these out, in order."""

    skipped: tuple[tuple[Skip, int], ...]
    after: Appointment | None
    """What it is from now on; None: it is over."""

    is_given_up: bool = False
    """Whether it was paused just now, because it failed too often."""

    last_before: float = 0.0
    """What `last_due` stays at if none of the slots is carried out after all."""

    put_off: Skip | None = None
    """Why what was due comes later instead, if it does; see `Obstacles.until`."""


def words_of(it: Appointment) -> str:
    """Say what an appointment is about."""
    own = "its checklist" if it.by_settings else ""
    return "; ".join(each for each in (own, it.text, *it.items) if each)


def slot_name(appointment_id: str, due: float) -> str:
    """Name a slot; the same whoever asks, and for no other one."""
    return f"{appointment_id}@{due:.0f}"


def part_name(slot: str, part: int) -> str:
    """Name one message of a slot that is carried out as several; the first is 1."""
    return slot if part == 1 else f"{slot}#{part}"


def plan_name(slot: str) -> str:
    """Name what an agent has decided to do in a slot."""
    return f"{slot}{PLAN}"


def wake(
    it: Appointment,
    now: float,
    zone: tzinfo,
    policy: SlotPolicy,
    previous: Previous,
    bar: Obstacles | None = None,
) -> DueOutcome:
    """Decide what is to be done about an appointment.

    Args:
        now: Unix seconds.
        zone: the one that `it.zone` names.
        previous: what became of `it.last_due`.
        bar: what stands in its way now.
    """
    it, is_given_up = _judge(it, policy, previous)
    slots: list[float] = []
    skipped: list[tuple[Skip, int]] = []
    put_off: Skip | None = None
    if it.run_at and it.run_at <= now:
        slots.append(it.run_at)
        it = msgspec.structs.replace(it, run_at=0.0)
    if it.next_due and it.next_due <= now and not it.paused:
        due, missed = _due(it, now, zone, policy)
        following = it.rule(zone).next_after(now) if it.repeat else None
        reason = _reason_not_to(it, previous, bar)
        if due and bar is not None and reason == bar.reason and bar.until > now:
            following, put_off = bar.until, bar.reason
            count = _passed_over(it, zone, following) - missed
            skipped.append((bar.reason, max(0, count)))
        elif reason is not None:
            skipped.append((reason, len(due)))
        else:
            # By hand it may have been run at this very second.
            slots += [each for each in due if each not in slots]
        skipped.append(("missed", missed))
        it = msgspec.structs.replace(it, next_due=following or 0.0)
    count = sum(many for _, many in skipped)
    after = msgspec.structs.replace(
        it,
        fired=it.fired + len(slots),
        skipped=it.skipped + count,
        last_due=slots[-1] if slots else it.last_due,
    )
    is_over = not (after.wakes or after.paused or after.kind == "heartbeat")
    told = tuple(each for each in skipped if each[1])
    left = None if is_over else after
    return DueOutcome(tuple(slots), told, left, is_given_up, it.last_due, put_off)


def without(woken: DueOutcome, known: frozenset[float]) -> DueOutcome:
    """Leave out slots that were carried out before.

    They count as they did then: once, and if they failed, once as failures.
    """
    new = tuple(due for due in woken.slots if due not in known)
    again = len(woken.slots) - len(new)
    if not again:
        return woken
    after = woken.after
    if after is not None:
        after = msgspec.structs.replace(
            after,
            fired=after.fired - again,
            skipped=after.skipped + again,
            last_due=new[-1] if new else woken.last_before,
        )
    skipped: tuple[tuple[Skip, int], ...] = (*woken.skipped, ("again", again))
    return msgspec.structs.replace(woken, slots=new, skipped=skipped, after=after)


def turned_back(it: Appointment, now: float, zone: tzinfo) -> Appointment:
    """Reckon the next slot anew after the clock went back.

    Otherwise a clock that once was wrong by a month would silence it for a month. What
    was carried out is not carried out again: slots have names.
    """
    if not it.repeat or not it.next_due:
        return it
    following = it.rule(zone).next_after(now) or it.next_due
    return msgspec.structs.replace(it, next_due=min(it.next_due, following))


def _judge(
    it: Appointment, policy: SlotPolicy, previous: Previous
) -> tuple[Appointment, bool]:
    """Count how the slot before ended; pause what failed too often."""
    if previous == "done":
        return msgspec.structs.replace(it, failures=0, last_due=0.0), False
    if previous != "failed":
        return it, False
    it = msgspec.structs.replace(it, failures=it.failures + 1, last_due=0.0)
    if not policy.most_failures or it.failures < policy.most_failures:
        return it, False
    return msgspec.structs.replace(it, paused="failures"), True


def _reason_not_to(
    it: Appointment, previous: Previous, bar: Obstacles | None
) -> Skip | None:
    if it.repeat and previous == "open":
        return "busy"
    if bar is not None:
        return bar.reason
    if it.kind == "heartbeat" and not (it.items or it.text or it.by_settings):
        return "empty"
    return None


def _passed_over(it: Appointment, zone: tzinfo, until: float) -> int:
    """Count the slots that are not carried out because one is put off until then."""
    return max(0, it.rule(zone).count(it.next_due, until) - 1) if it.repeat else 0


def _due(
    it: Appointment, now: float, zone: tzinfo, policy: SlotPolicy
) -> tuple[list[float], int]:
    """Give the slots to carry out, and how many were missed."""
    if not it.repeat:
        return [it.next_due], 0  # better late than never
    rule = it.rule(zone)
    catch_up = "skip" if it.kind in OF_NOW else policy.catch_up
    most = policy.catch_up_most if catch_up == "all" else 1
    chosen: list[float] = []
    last = rule.last_until(now, it.next_due)
    while last is not None and len(chosen) < most:
        chosen.append(last)
        last = rule.last_until(last - 1, it.next_due)
    if not chosen:
        # Set by hand, or by another release: a slot that is not the rule's.
        chosen.append(it.next_due)
    chosen.reverse()
    missed = rule.count(it.next_due, chosen[0])
    if catch_up == "skip" and now - chosen[-1] > policy.late_within:
        return [], missed + len(chosen)
    return chosen, missed


OWNER = "settings"
"""Whose rows they are: nobody's, who could change them by asking an agent."""

_LENGTH = 26
"""Characters of an id, as all others have."""


def name_of(kind: Kind, agent: str) -> str:
    """Name the appointment of an agent; people see its first characters."""
    return sha256(f"{kind}/{agent}".encode()).hexdigest()[:_LENGTH].upper()


def settle(
    kept: Mapping[str, Appointment],
    wanted: Mapping[str, Appointment],
    now: float,
    zone_of: Callable[[Appointment], tzinfo],
) -> dict[str, Appointment | None]:
    """Say what is to be stored; None: it is to go.

    Args:
        kept: what there is, by id; only of this owner.
        wanted: what the settings say; without times.
        now: Unix seconds.
        zone_of: gives the zone of an appointment.
    """
    changes: dict[str, Appointment | None] = {x: None for x in kept if x not in wanted}
    for name, it in wanted.items():
        was = kept.get(name)
        is_same = was is not None and (was.repeat, was.zone) == (it.repeat, it.zone)
        if was is None or not is_same:
            it = _begun(it, was, now, zone_of(it))  # noqa: PLW2901  as it is stored
        else:
            it = _as_known(it, was)  # noqa: PLW2901  as it is stored
        if it != was:
            changes[name] = it
    return changes


def _begun(
    it: Appointment, was: Appointment | None, now: float, zone: tzinfo
) -> Appointment:
    """Reckon times from now on."""
    known = it if was is None else _as_known(it, was)
    begun = msgspec.structs.replace(known, anchor=float(floor(now)))
    due = begun.rule(zone).next_after(now) or 0.0
    created = now if was is None else was.created_at
    return msgspec.structs.replace(begun, next_due=due, created_at=created)


def _as_known(it: Appointment, was: Appointment) -> Appointment:
    """Give what is wanted with what is known of it."""
    return msgspec.structs.replace(
        it,
        anchor=was.anchor,
        next_due=was.next_due,
        run_at=was.run_at,
        last_due=was.last_due,
        fired=was.fired,
        skipped=was.skipped,
        failures=was.failures,
        paused=was.paused,
        created_at=was.created_at,
    )
