"""`callboard play`: a room from a file, with the agents of the settings."""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec
import trio
from click.core import ParameterSource

from actors.messages.inbound import Inbound
from actors.transport import Transport
from connectors.admin.display import STATES, agent_of
from connectors.app.app import open_app
from connectors.app.reload.reload import SettingsSource
from connectors.app.shutdown import Drain
from connectors.chat.platforms import TransportParts
from connectors.chat.terminal.plain import StandardConsole
from connectors.chat.terminal.playback import (
    LINE,
    Cue,
    Play,
    PlayingTransport,
    RoomSettings,
    Wait,
    check_agents,
    read_play,
)
from connectors.commands import config_option
from connectors.commands.common.database import database_at
from connectors.commands.common.output import complain, log_option, say, table
from connectors.commands.common.running import (
    calm_collector,
    hearing_signals,
    loaded,
    private_files,
    run_interruptible,
    wait_any,
)
from runtime.clock import SystemClock
from runtime.errors import SettingsError
from runtime.store.database import Inspection
from runtime.store.rows import MAX_ROWS, StoredMessage, decoded

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


class RoomPlayer:
    """Says each line when it is its turn.

    Args:
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


class PlayedRoom(msgspec.Struct, frozen=True):
    """The messages of one play."""

    connector: str
    """Name of the room's account."""

    since: float
    """Unix seconds; what came in before is none of it."""

    refused: tuple[tuple[Cue, str], ...] = ()
    """What was not taken in, and why: the store knows nothing of it."""


def unanswered(rows: Inspection, played: PlayedRoom) -> Iterator[str]:
    """Tell which messages nobody answered, and why, as the store has it."""
    messages = [
        row
        for row in rows.messages(newest_first=False, limit=MAX_ROWS)
        if row.connector == played.connector and row.at >= played.since
    ]
    found = [
        row for row in messages if row.state != "replied" or row.reason == "silent"
    ]
    cells: list[tuple[object, ...]] = [_cells(row, rows) for row in found]
    cells += [
        (str(cue.line), cue.speaker, None, "refused", why, cue.text)
        for cue, why in played.refused
    ]
    count = len(messages) + len(played.refused)
    if not cells:
        yield f"All were answered: {count} of {count} messages."
        return
    yield f"Not answered, of {count} messages:"
    yield from table(HEADERS, sorted(cells, key=_line))


def _line(cells: Sequence[object]) -> int:
    return int(str(cells[0] or 0))


def _cells(row: StoredMessage, rows: Inspection) -> tuple[object, ...]:
    is_open = row.state in STATES["pending"] + STATES["running"]
    why = NOT_YET if is_open else WHY.get(row.reason, row.reason)
    inbound = decoded(row, Inbound)
    if inbound is None:
        return (None, None, None, row.state, why, None)
    asker = inbound.chain.agents[-2:-1]
    return (
        inbound.platform_fields.get(LINE),
        asker[0] if asker else inbound.sender_name,
        agent_of(row, inbound, rows, complain),
        row.state,
        why,
        inbound.text,
    )


DATABASE = "room.db"

# Chosen: a hundred times what a play of MOST_LINES lines has.
MOST_BYTES = 10_000_000


@dataclass(frozen=True)
class PlaySettings:
    """How a play is to be played."""

    play: Play
    connector: str
    pace: float | None
    patience: float


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@config_option
@click.option(
    "--db",
    type=click.Path(path_type=Path),
    help="Keep the database here. Without it: in a temporary folder.",
)
@click.option(
    "--connector",
    default="room",
    show_default=True,
    help="Name of the account whose settings and routes hold for the room.",
)
@click.option(
    "--pace",
    type=click.FloatRange(min=0),
    help="Seconds between two lines. Without it: each when the room is quiet.",
)
@click.option(
    "--patience",
    type=click.FloatRange(min=0),
    default=300.0,
    show_default=True,
    help="Most seconds until the room must be quiet.",
)
@log_option
@click.pass_context
def command(  # noqa: PLR0913, PLR0917  one for each option
    context: click.Context,
    file: Path,
    config: Path | None,
    db: Path | None,
    connector: str,
    pace: float | None,
    patience: float,
    log_level: str,
) -> None:
    """Play a room from FILE: people speak, agents answer, nothing leaves the room.

    Prints what is said as it happens, and at the end which messages nobody answered,
    and why. Agents, models and tools are those of the settings, so what those reach is
    reached; messages and answers go nowhere else, and are forgotten at the end.

    FILE has lines like `Ada: @anna good morning`; see config/rooms/ for one.
    """
    play = read_play(read_text(file), str(file))
    source_of_config = context.get_parameter_source("config")
    if play.settings and source_of_config is not ParameterSource.COMMANDLINE:
        config = file.parent / play.settings
    with loaded(config, log_level, may_fall_back=True) as source:
        play = check_agents(play, source.settings.value.agents, str(file))
        play = msgspec.structs.replace(play, room=play.room or file.stem)
        show = PlaySettings(play, connector, pace, patience)
        with database(db) as path:
            since = SystemClock().wall()
            room = run_interruptible(perform, source, show, path)
            played = PlayedRoom(connector, since, tuple(room.refused))
            with database_at(path).inspect() as rows:
                say()
                for line in unanswered(rows, played):
                    say(line)


def read_text(file: Path) -> str:
    """Read a play's file.

    Raises:
        SettingsError: it cannot be read, or is none.
    """
    try:
        with file.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except OSError as error:
        text = f"this play cannot be read: {error.strerror}"
        hint = "give the path of a file as in config/rooms/"
        raise SettingsError(text, file=str(file), hint=hint) from error
    if len(content) > MOST_BYTES:
        raise SettingsError(f"a play has at most {MOST_BYTES} bytes", file=str(file))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        text = "this is no UTF-8 text"
        raise SettingsError(text, file=str(file), line=line) from error


@contextmanager
def database(given: Path | None) -> Generator[Path]:
    """Give the database that was named, or one that is gone at the end."""
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="callboard-play-") as folder:
        yield Path(folder) / DATABASE


async def perform(
    source: SettingsSource, show: PlaySettings, path: Path
) -> PlayingTransport:
    """Run the company until the play is over, or somebody ends it; give the room.

    Raises:
        OSError: nobody reads any more.
    """
    config, redact = source.settings.value, source.redactor.clean
    store = msgspec.structs.replace(config.store, kind="sqlite", path=str(path))
    config = msgspec.structs.replace(config, store=store)
    private, name = private_files(source.settings), show.connector
    settings = RoomSettings(
        connector=name,
        chat=show.play.room,
        agents=show.play.agents,
        roles=show.play.roles,
    )
    console = StandardConsole(io.StringIO(), sys.stdout)
    rooms: list[PlayingTransport] = []

    def make(parts: TransportParts) -> Transport:
        rooms.append(PlayingTransport(settings, console, parts.clock, parts.ids))
        rooms[-1].blobs, rooms[-1].shown = parts.blobs, parts.shown
        return rooms[-1]

    async def run(is_told: trio.Event) -> None:
        async with open_app(config, {name: make}, redact, private) as app:
            calm_collector()
            drain = Drain(app.system, app.store, app.clock, (name,))
            player = RoomPlayer(show.play, rooms[-1], drain, show.pace, show.patience)
            ends = (app.ended[name].wait, app.system.wait_ended, is_told.wait)
            await wait_any(player.run, *ends)
        if (error := rooms[-1].output_error) is not None:
            raise error

    await hearing_signals(run)
    return rooms[-1]
