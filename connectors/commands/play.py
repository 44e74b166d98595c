"""`callboard play`: a room from a file, with the agents of the settings."""

from __future__ import annotations

import io
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from click.core import ParameterSource

from connectors.app import open_app
from connectors.chat.console import StandardConsole
from connectors.chat.play_file import Play, check_agents, read_play
from connectors.chat.playing import PlayingTransport, RoomSettings
from connectors.commands import config_option
from connectors.commands.interruptible import run_interruptible
from connectors.commands.player import Played, Player, unanswered
from connectors.commands.printing import say
from connectors.commands.running import (
    calm_collector,
    hearing_signals,
    loaded,
    private_files,
    wait_any,
)
from connectors.drain import Drain
from runtime.clock import SystemClock
from runtime.errors import SettingsError
from runtime.sqlite_browse import browse
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from collections.abc import Generator

    import trio

    from actors.transport import Transport
    from connectors.reloading import Source
    from connectors.transports import Parts

DATABASE = "room.db"

# Chosen: a hundred times what a play of MOST_LINES lines has.
MOST_BYTES = 10_000_000


@dataclass(frozen=True)
class Show:
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
@click.option(
    "--log",
    "log_level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="error",
    show_default=True,
    help="Least important kind of log line that is shown.",
)
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
        show = Show(play, connector, pace, patience)
        with database(db) as path:
            since = SystemClock().wall()
            room = run_interruptible(perform, source, show, path)
            played = Played(connector, since, tuple(room.refused))
            with browse(path) as browser, survey(path) as rows:
                say()
                for line in unanswered(browser, rows, played):
                    say(line)


def read_text(file: Path) -> str:
    """Read a play.

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


async def perform(source: Source, show: Show, path: Path) -> PlayingTransport:
    """Run the company until the play is over, or somebody ends it; give the room.

    Raises:
        OSError: nobody reads any more.
    """
    config, redact = source.settings.value, source.redactor.clean
    store = msgspec.structs.replace(config.store, path=str(path))
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

    def make(parts: Parts) -> Transport:
        rooms.append(PlayingTransport(settings, console, parts.clock, parts.ids))
        rooms[-1].blobs = parts.blobs
        return rooms[-1]

    async def run(is_told: trio.Event) -> None:
        async with open_app(config, {name: make}, redact, private) as app:
            calm_collector()
            drain = Drain(app.system, app.store, app.clock, (name,))
            player = Player(show.play, rooms[-1], drain, show.pace, show.patience)
            ends = (app.ended[name].wait, app.system.wait_ended, is_told.wait)
            await wait_any(player.run, *ends)
        if (error := rooms[-1].output_error) is not None:
            raise error

    await hearing_signals(run)
    return rooms[-1]
