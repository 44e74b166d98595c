"""What a model's wishes about later times come to: rows to change, and what to tell.

Pure. The results say what the database will hold once the changes are committed, never
what the model said of it (F259). What is wanted of an appointment that is not this
person's, or this group's, is answered as if there were none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from actors.rules import actions, beating, tasking

if TYPE_CHECKING:
    from actors.rules.appointing import Book
    from actors.rules.confirming import Outcome

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


def carry_out(book: Book, wish: Wish) -> Outcome:
    """Take one wish; give what it comes to."""
    match wish:
        case actions.Schedule():
            told = tasking.schedule(book, wish)
        case actions.CreateCron():
            told = tasking.cron(book, wish)
        case actions.CancelTask(id_prefix=prefix):
            told = tasking.cancel(book, prefix)
        case actions.UpdateTask():
            told = tasking.update(book, wish)
        case _:
            told = _beat(book, wish)
    return told


def _beat(book: Book, wish: Beating) -> Outcome:
    match wish:
        case actions.CreateHeartbeat():
            told = beating.create(book, wish)
        case actions.AddHeartbeatItem(item=item):
            told = beating.add_item(book, item)
        case actions.RemoveHeartbeatItem(item=item):
            told = beating.remove_item(book, item)
        case actions.SetHeartbeatInterval(minutes=minutes):
            told = beating.set_interval(book, minutes)
        case _:
            assert_never(wish)
    return told
