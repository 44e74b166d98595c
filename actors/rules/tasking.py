"""Reminders, tasks and cron, as models ask for them; pure (F239, F243-F246)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.rules import recurrence
from actors.rules.appointing import refused, what_of
from actors.rules.confirming import Outcome, Similar
from actors.rules.likeness import are_alike
from actors.rules.local_time import in_words
from actors.rules.moments import Unclear, parse_moment

if TYPE_CHECKING:
    from actors.rules import actions
    from actors.rules.appointing import Book
    from actors.rules.schedule import Kind

SHORTEST_PREFIX = 4
"""Characters of an id that are enough, if there are not two that begin so."""

MOST_SIMILAR = 3

SETTLED = "[agents.{}.heartbeat]"
"""Where a heartbeat stands that nobody asked for in a chat."""


def schedule(book: Book, wish: actions.Schedule) -> Outcome:
    """Set a reminder, or a task that the agent does later (F243, F244)."""
    kind: Kind = "task" if wish.is_action else "reminder"
    repeat = recurrence.parse_repeat(wish.repeat)
    if isinstance(repeat, Unclear):
        return refused(wish.text, repeat.why)
    due = parse_moment(wish.due, book.now, book.zone, may_be_past=bool(repeat))
    if isinstance(due, Unclear):
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


def cron(book: Book, wish: actions.CreateCron) -> Outcome:
    """Set what an agent does again and again (F239)."""
    repeat = recurrence.parse_repeat(wish.schedule)
    what = wish.name or wish.prompt
    if isinstance(repeat, Unclear):
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


def cancel(book: Book, prefix: str) -> Outcome:
    """Cancel what has an id that begins so (F245)."""
    found = _find(book, prefix)
    if isinstance(found, Outcome):
        return found
    it = book.kept[found]
    if it.by_settings:
        return refused(what_of(it), f"the settings have it: {SETTLED.format(it.agent)}")
    del book.kept[found]
    book.changed[found] = None
    return Outcome(kind="cancelled", what=what_of(it))


def update(book: Book, wish: actions.UpdateTask) -> Outcome:
    """Change the text, the time or the repeating of a task (F246)."""
    found = _find(book, wish.id_prefix)
    if isinstance(found, Outcome):
        return found
    it = book.kept[found]
    what = wish.text or what_of(it)
    repeat: str | Unclear = it.repeat
    if wish.repeat:
        repeat = recurrence.parse_repeat(wish.repeat)
    if isinstance(repeat, Unclear):
        return refused(what, repeat.why)
    due: float | Unclear = it.next_due or it.anchor
    if wish.due:
        due = parse_moment(wish.due, book.now, book.zone, may_be_past=bool(repeat))
    if isinstance(due, Unclear):
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


def _find(book: Book, prefix: str) -> str | Outcome:
    wanted = prefix.strip().strip("[]#").upper()
    found = [name for name in book.kept if name.startswith(wanted)]
    if wanted in book.kept:
        return wanted
    if len(wanted) < SHORTEST_PREFIX or not found:
        return Outcome(kind="not_found", what=prefix)
    if len(found) > 1:
        return refused(prefix, f"{len(found)} tasks begin so; write more of the id")
    return found[0]


def _similar(book: Book, text: str) -> tuple[Similar, ...]:
    """Find what is much like it, and was there before."""
    return tuple(
        Similar(what_of(it), in_words(it.next_due, book.zone, it.zone))
        for it in book.kept.values()
        if it.kind != "heartbeat" and it.next_due and are_alike(it.text, text)
    )[:MOST_SIMILAR]
