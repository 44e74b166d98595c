"""Plays a room: has people speak in their order, and tells what nobody answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import trio

from connectors.chat.play_file import Cue, Wait
from connectors.chat.playing import LINE
from connectors.commands.printing import complain, table
from connectors.office.job import STATES, agent_of, read_inbound
from runtime.rows import MAX_ROWS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from connectors.chat.play_file import Play
    from connectors.chat.playing import PlayingTransport
    from connectors.drain import Drain
    from runtime.rows import StoredMessage
    from runtime.sqlite_browse import Browser
    from runtime.sqlite_survey import Survey

# Chosen: short beside any answer, long beside the look into the store.
LOOK_EVERY = 0.02

HEADERS = ("LINE", "FROM", "FOR", "STATE", "WHY", "WORDS")

WHY = {
    "not_addressed": "not_addressed: no agent was meant",
    "unknown_agent": "unknown_agent: nobody has this name",
    "busy": "busy: too much waited",
    "silent": "silent: the agent chose to say nothing",
    "stopped": "stopped: somebody said /stop",
}
"""What some reasons mean; others speak for themselves."""

NOT_YET = "still under way when the play was over"


class Player:
    """Has each line said when it is its turn.

    Args:
        play: what is said.
        room: where.
        drain: tells whether anybody still works at an answer.
        pace: seconds between two lines; None: the next is said when all is quiet.
        patience: most seconds until all must be quiet.
    """

    def __init__(
        self,
        play: Play,
        room: PlayingTransport,
        drain: Drain,
        pace: float | None,
        patience: float,
    ) -> None:
        self._play = play
        self._room = room
        self._drain = drain
        self._pace = pace
        self._patience = patience

    async def run(self) -> None:
        """Play from the first line to the last, and until all is quiet."""
        is_first = True
        for step in self._play.steps:
            if isinstance(step, Wait):
                await trio.sleep(step.seconds)
                continue
            if not is_first:
                await self._wait_turn(step)
            is_first = False
            await self._room.say(step)
        await self._wait_until(lambda: False)

    async def _wait_turn(self, cue: Cue) -> None:
        room = self._room
        if self._pace is not None:
            await trio.sleep(self._pace)
        elif cue.text.startswith("/stop"):
            # It stops nothing before an answer has begun.
            await self._wait_until(lambda: room.has_begun)
        elif cue.text.startswith(("/approve", "/deny")):
            await self._wait_until(lambda: room.was_asked)
        elif not cue.is_at_once:
            await self._wait_until(lambda: False)

    async def _wait_until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so, or all is quiet, or patience is at its end."""
        with trio.move_on_after(self._patience) as scope:
            # The store is changed by everybody.
            while not is_so() and await self._drain.under_way():  # noqa: ASYNC110
                await trio.sleep(LOOK_EVERY)
        if scope.cancelled_caught:
            text = f"not quiet within {self._patience:g} s; going on all the same"
            self._room.notice(text)


class Played(msgspec.Struct, frozen=True):
    """What was played."""

    connector: str
    """Name of the room's account."""

    since: float
    """Unix seconds; what came in before is none of it."""

    refused: tuple[tuple[Cue, str], ...] = ()
    """What was not taken in, and why: the store knows nothing of it."""


def unanswered(browser: Browser, survey: Survey, played: Played) -> Iterator[str]:
    """Tell which messages nobody answered, and why, as the store has it.

    Args:
        browser: of the database.
        survey: of the same; where it is looked up who was to answer.
        played: which messages are meant.
    """
    rows = [
        row
        for row in browser.messages(newest_first=False, limit=MAX_ROWS)
        if row.connector == played.connector and row.at >= played.since
    ]
    found = [row for row in rows if row.state != "replied" or row.reason == "silent"]
    cells: list[tuple[object, ...]] = [_cells(row, survey) for row in found]
    cells += [
        (str(cue.line), cue.speaker, None, "refused", why, cue.text)
        for cue, why in played.refused
    ]
    count = len(rows) + len(played.refused)
    if not cells:
        yield f"All {count} messages were answered."
        return
    yield f"Not answered, of {count} messages:"
    yield from table(HEADERS, sorted(cells, key=_line))


def _line(cells: Sequence[object]) -> int:
    return int(str(cells[0] or 0))


def _cells(row: StoredMessage, survey: Survey) -> tuple[object, ...]:
    is_open = row.state in STATES["pending"] + STATES["running"]
    why = NOT_YET if is_open else WHY.get(row.reason, row.reason)
    inbound = read_inbound(row)
    if inbound is None:
        return (None, None, None, row.state, why, None)
    asker = inbound.chain.agents[-2:-1]
    return (
        inbound.platform_fields.get(LINE),
        asker[0] if asker else inbound.sender_name,
        agent_of(row, inbound, survey, complain),
        row.state,
        why,
        inbound.text,
    )
