"""The inbound messages by which an agent carries out a due slot; pure.

It goes the way of people's messages, with their retries, limits and approvals. But
nobody wrote it: it is no command, no yes and no no, whatever words it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

import msgspec

from actors.config.schedule import MOST_GROUPS
from actors.journal.plan import AgentPlan
from actors.messages import priority
from actors.messages.inbound import ALONE, Inbound, Occasion
from actors.rules.text.durations import in_words
from actors.schedule.appointments import Appointment, part_name, plan_name, slot_name
from actors.schedule.checklist import ChecklistGroup

LATE = " It is late: nobody was here at its time."
PART = "Only this part of the list is yours, {domain}; somebody sees to the rest:"
ASK = {
    "reminder": "Tell it in your own words, in a sentence or two. Do nothing else.",
    "task": "Nobody wrote this now. Do it, and say what came of it.",
    "cron": "Nobody wrote this now. Do it; if nothing is to be said, answer NO_REPLY.",
    "heartbeat": (
        "Nobody wrote this now. See whether anything of this needs to be done or said;"
        " if not, answer HEARTBEAT_OK and nothing else."
    ),
    "autonomous": "Nobody wrote this now. See whether anything serves your goals now.",
}


def as_inbound(
    appointment_id: str,
    it: Appointment,
    due: float,
    message_id: str,
    times: TimeWords,
    part: SlotMessage | None = None,
) -> Inbound:
    """Make the message of a slot, or one of several.

    Args:
        due: which slot, in Unix seconds.
        part: what of a heartbeat's list it is about; None: the appointment's own words.
    """
    part = part or SlotMessage(
        ChecklistGroup("", tuple(f"- {each}" for each in it.items))
    )
    name = part_name(slot_name(appointment_id, due), part.number)
    is_said = it.kind == "reminder" and times.is_plain
    occasion: Occasion = "said" if is_said else it.kind
    return Inbound(
        id=message_id,
        platform=it.platform,
        platform_id=name,
        address=it.address,
        sender_id=it.sender_id,
        sender_name=it.sender_name,
        text=it.text if is_said else _asked(it, due, times, part),
        received_at=times.now,
        is_direct=it.is_direct,
        agent=it.agent,
        priority=priority.SCHEDULED,
        occasion=occasion,
        # Why not of the others: only their end tells whether anything is to be said.
        wants_drafts=occasion not in ALONE,
        lane="" if is_said else lane_of(it.kind, part),
        tokens=it.tokens,
    )


def as_plan(slot: Inbound, plan: AgentPlan, message_id: str, now: float) -> Inbound:
    """Make the message by which an agent carries out what it has decided.

    Args:
        now: Unix seconds.
    """
    return msgspec.structs.replace(
        slot,
        id=message_id,
        platform_id=plan_name(slot.platform_id),
        text=plan.text,
        received_at=now,
        occasion="plan",
        tokens=plan.tokens,
    )


class SlotMessage(msgspec.Struct, frozen=True):
    """One message of a run; a long checklist makes several."""

    group: ChecklistGroup
    number: int = 1
    of: int = 1


def lane_of(kind: str, part: SlotMessage) -> str:
    """Name the lane of a message: scheduled work never holds up what people ask."""
    return f"{kind}{part.number}" if part.of > 1 else kind


PARTS = tuple(f"heartbeat{n}" for n in range(1, MOST_GROUPS + 1))
LANES = (*ASK, *PARTS)
"""All lanes that a chat can have."""


def parts_of(groups: Sequence[ChecklistGroup]) -> tuple[SlotMessage | None, ...]:
    """Say as how many messages a slot is carried out; at least one."""
    found = (SlotMessage(each, n, len(groups)) for n, each in enumerate(groups, 1))
    return tuple(found) or (None,)


class TimeWords:
    """How a message of a slot words its times.

    Args:
        now: Unix seconds.
        late_within: seconds by which something is not yet late.
        is_plain: whether reminders are said as they were set.
    """

    __slots__ = ("is_plain", "late_within", "now", "zone")

    def __init__(
        self, now: float, zone: tzinfo, late_within: float, *, is_plain: bool
    ) -> None:
        self.now = now
        self.zone = zone
        self.late_within = late_within
        self.is_plain = is_plain


def _asked(it: Appointment, due: float, times: TimeWords, part: SlotMessage) -> str:
    by = f", set by {it.sender_name}" if it.sender_name else ""
    when = in_words(due, times.zone, it.zone)
    late = LATE if times.now - due > times.late_within else ""
    head = f"({it.kind.capitalize()}{by}, due {when}.{late} {ASK[it.kind]})"
    domain = part.group.domain
    title = [f"{domain}:"] if domain else []
    if part.of > 1:
        title = [PART.format(domain=domain or "what has no headline")]
    text = [it.text] if it.text else []
    return "\n".join([head, *text, *title, *part.group.lines])
