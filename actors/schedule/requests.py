"""Requests of models for appointments: the rows they change, and their results.

Pure. The results say what the database will hold once the changes are committed, never
what the model said of it. What is wanted of an appointment that is not this
person's, or this group's, is answered as if there were none.

Heartbeats, as models ask for them; pure.

An agent has one heartbeat in each chat: what it looks after there, and how often.

Reminders, tasks and cron, as models ask for them; pure.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

from actors.rules.markers import actions
from actors.rules.markers.outcomes import ActionOutcome, SimilarTask
from actors.rules.text.durations import in_words
from actors.rules.text.similarity import are_alike
from actors.schedule import recurrence
from actors.schedule.appointments import Appointment, Kind
from actors.schedule.booking import AppointmentBook, refused, what_of
from actors.schedule.recurrence import UnclearTime, parse_moment

SHORTEST_PREFIX = 4
"""Characters of an id that are enough, if there are not two that begin so."""

MOST_SIMILAR = 3

SETTLED = "[agents.{}.heartbeat]"
"""Where a heartbeat stands that nobody asked for in a chat."""


def schedule(book: AppointmentBook, wish: actions.Schedule) -> ActionOutcome:
    """Set a reminder, or a task that the agent does later."""
    kind: Kind = "task" if wish.is_action else "reminder"
    repeat = recurrence.parse_repeat(wish.repeat)
    if isinstance(repeat, UnclearTime):
        return refused(wish.text, repeat.why)
    due = parse_moment(wish.due, book.now, book.zone, may_be_past=bool(repeat))
    if isinstance(due, UnclearTime):
        return refused(wish.text, due.why)
    made = book.new(kind, wish.text, repeat, due)
    similar = _similar(book, wish.text)
    told = book.set(book.new_id(), made)
    if told.kind == "refused":
        return told
    return msgspec.structs.replace(
        told,
        kind="action_scheduled" if wish.is_action else "scheduled",
        similar=similar,
    )


def cron(book: AppointmentBook, wish: actions.CreateCron) -> ActionOutcome:
    """Set what an agent does again and again."""
    repeat = recurrence.parse_repeat(wish.schedule)
    what = wish.name or wish.prompt
    if isinstance(repeat, UnclearTime):
        return refused(what, repeat.why)
    if not repeat:
        return refused(what, "it needs a rule, such as 0 9 * * 1-5 or every 2h")
    agent = book.agent(wish.agent)
    if agent is None:
        return refused(what, f"there is no agent {wish.agent!r}")
    text = f"{wish.name}: {wish.prompt}" if wish.name else wish.prompt
    made = book.new("cron", text, repeat, float(int(book.now)), agent)
    if recurrence.is_every(repeat):  # for the first time after one period
        first = made.rule(book.zone).next_after(book.now) or made.anchor
        made = msgspec.structs.replace(made, anchor=first)
    similar = _similar(book, text)
    told = book.set(book.new_id(), made)
    if told.kind == "refused":
        return told
    return msgspec.structs.replace(
        told, kind="cron_created", what=what, similar=similar
    )


def cancel(book: AppointmentBook, prefix: str) -> ActionOutcome:
    """Cancel what has an id that begins so."""
    found = _find(book, prefix)
    if isinstance(found, ActionOutcome):
        return found
    it = book.kept[found]
    if it.by_settings:
        return refused(what_of(it), f"the settings have it: {SETTLED.format(it.agent)}")
    del book.kept[found]
    book.changed[found] = None
    return ActionOutcome(kind="cancelled", what=what_of(it))


def update(book: AppointmentBook, wish: actions.UpdateTask) -> ActionOutcome:
    """Change the text, the time or the repeating of a task."""
    found = _find(book, wish.id_prefix)
    if isinstance(found, ActionOutcome):
        return found
    it = book.kept[found]
    what = wish.text or what_of(it)
    repeat: str | UnclearTime = it.repeat
    if wish.repeat:
        repeat = recurrence.parse_repeat(wish.repeat)
    if isinstance(repeat, UnclearTime):
        return refused(what, repeat.why)
    due: float | UnclearTime = it.next_due or it.anchor
    if wish.due:
        due = parse_moment(wish.due, book.now, book.zone, may_be_past=bool(repeat))
    if isinstance(due, UnclearTime):
        return refused(what, due.why)
    is_same = not (wish.due or wish.repeat)
    changed = msgspec.structs.replace(
        it,
        text=wish.text or it.text,
        repeat=repeat,
        anchor=it.anchor if is_same else due,
        # What failed, or was paused, is begun anew by whoever changes it.
        failures=0,
        paused="" if it.paused == "failures" else it.paused,
    )
    told = book.set(found, changed, keeps_due=is_same)
    if told.kind == "refused":
        return told
    return msgspec.structs.replace(told, kind="updated")


def _find(book: AppointmentBook, prefix: str) -> str | ActionOutcome:
    wanted = prefix.strip().strip("[]#").upper()
    found = [name for name in book.kept if name.startswith(wanted)]
    if wanted in book.kept:
        return wanted
    if len(wanted) < SHORTEST_PREFIX or not found:
        return ActionOutcome(kind="not_found", what=prefix)
    if len(found) > 1:
        return refused(prefix, f"{len(found)} tasks begin so; write more of the id")
    return found[0]


def _similar(book: AppointmentBook, text: str) -> tuple[SimilarTask, ...]:
    """Find what is much like it, and was there before."""
    return tuple(
        SimilarTask(what_of(it), in_words(it.next_due, book.zone, it.zone))
        for it in book.kept.values()
        if it.kind != "heartbeat" and it.next_due and are_alike(it.text, text)
    )[:MOST_SIMILAR]


HALF_HOUR = 30
"""Minutes between two heartbeats if nobody says otherwise."""


def create(book: AppointmentBook, wish: actions.CreateHeartbeat) -> ActionOutcome:
    """Set what an agent looks after, and how often."""
    agent = book.agent(wish.agent)
    if agent is None:
        return refused(wish.prompt, f"there is no agent {wish.agent!r}")
    found, it = _beating(book, agent)
    rule = recurrence.beat(wish.minutes)
    it = msgspec.structs.replace(it, text=wish.prompt, repeat=rule)
    told = book.set(found, it)
    if told.kind == "refused":
        return told
    return ActionOutcome(kind="heartbeat_created", what=wish.prompt, count=wish.minutes)


def add_item(book: AppointmentBook, item: str) -> ActionOutcome:
    """Put an item on the list; the first begins the heartbeat."""
    found, it = _beating(book, book.origin.agent)
    if _folded(item) in map(_folded, it.items):
        return ActionOutcome(kind="heartbeat_added", what=item)
    if len(it.items) >= book.config.max_items:
        return refused(item, f"{book.config.max_items} items are the most")
    told = book.set(found, msgspec.structs.replace(it, items=(*it.items, item)))
    if told.kind == "refused":
        return msgspec.structs.replace(told, what=item)
    return ActionOutcome(kind="heartbeat_added", what=item)


def remove_item(book: AppointmentBook, item: str) -> ActionOutcome:
    """Take an item off the list; after the last it rests."""
    found, it = _beating(book, book.origin.agent)
    wanted = _folded(item)
    gone = [each for each in it.items if _folded(each) == wanted]
    gone = gone or [each for each in it.items if wanted in _folded(each)]
    if len(gone) != 1:
        return ActionOutcome(kind="not_found", what=item)
    left = tuple(each for each in it.items if each != gone[0])
    changed = msgspec.structs.replace(it, items=left)
    if not (left or it.text or it.by_settings):
        changed = msgspec.structs.replace(changed, next_due=0.0)
    book.keep(found, changed)
    return ActionOutcome(kind="heartbeat_removed", what=gone[0])


def set_interval(book: AppointmentBook, minutes: int) -> ActionOutcome:
    """Say how often the list is looked at."""
    found, it = _beating(book, book.origin.agent)
    rule = recurrence.beat(minutes)
    told = book.set(found, msgspec.structs.replace(it, repeat=rule))
    if told.kind == "refused":
        return told
    return ActionOutcome(kind="heartbeat_set", count=minutes)


def _beating(book: AppointmentBook, agent: str) -> tuple[str, Appointment]:
    """Give an agent's heartbeat for this chat, or how a new one would begin."""
    address = book.origin.address
    for name, it in book.kept.items():
        if it.kind == "heartbeat" and (it.agent, it.address) == (agent, address):
            return name, it
    rule = recurrence.beat(HALF_HOUR)
    return book.new_id(), book.new("heartbeat", "", rule, book.now // 1, agent)


def _folded(item: str) -> str:
    return " ".join(item.split()).casefold()


Beating = (
    actions.AddHeartbeatItem
    | actions.RemoveHeartbeatItem
    | actions.SetHeartbeatInterval
    | actions.CreateHeartbeat
)

Wish = (
    actions.Schedule
    | actions.CancelTask
    | actions.UpdateTask
    | actions.CreateCron
    | Beating
)
"""What of a model's actions is about later times."""


def carry_out(book: AppointmentBook, wish: Wish) -> ActionOutcome:
    """Take one wish; give what it comes to."""
    match wish:
        case actions.Schedule():
            told = schedule(book, wish)
        case actions.CreateCron():
            told = cron(book, wish)
        case actions.CancelTask(id_prefix=prefix):
            told = cancel(book, prefix)
        case actions.UpdateTask():
            told = update(book, wish)
        case _:
            told = _beat(book, wish)
    return told


def _beat(book: AppointmentBook, wish: Beating) -> ActionOutcome:
    match wish:
        case actions.CreateHeartbeat():
            told = create(book, wish)
        case actions.AddHeartbeatItem(item=item):
            told = add_item(book, item)
        case actions.RemoveHeartbeatItem(item=item):
            told = remove_item(book, item)
        case actions.SetHeartbeatInterval(minutes=minutes):
            told = set_interval(book, minutes)
        case _:
            assert_never(wish)
    return told
