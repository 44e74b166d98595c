"""A company by one of the settings files that come with the program.

Only what everybody has to fill in differs from the file: tokens, owners, a second
agent, a model. Crashes are real as far as the disk goes: its files are those that a
kill leaves.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import trio.testing

from connectors.app.app import App, open_app
from connectors.settings.load import load_app
from runtime.clock import SystemClock
from tests.support.defaults.places import Place
from tests.support.defaults.waiting import until

CONFIG = Path(__file__).parents[3] / "config"
LONG = "\n\n".join(
    f"Chapter {number}. " + "The keeper polished the lamp once more. " * 40
    for number in range(1, 13)
)
"""A long answer, in chapters: about 20,000 characters."""

SCRIPT = f"""
[[rule]]
pattern = 'break'
fail = "refused"

[[rule]]
pattern = '\\[Image: '
reply = "A picture."

[[rule]]
pattern = 'crash'
fail = "hang"

[[rule]]
pattern = 'at length'
reply = '''{LONG}'''

[[rule]]
agent = "ben"
pattern = '.'
reply = "Ben here."

[default]
reply = "Anna here."
"""
RATE = 20.0
"""Seconds of the company's time in one of the machine's."""

BEN = '\n[agents.ben]\npersona = "agents/ben"\n'

PATIENT = "\n[limits]\nnotice_after = 600.0\n"
"""Why: the company's seconds are so short that a busy machine would have people told
that it takes a little longer."""


class FastClock:
    """The company's clocks, which any thread may read.

    Args:
        time: trio's clock.
    """

    def __init__(self, time: trio.testing.MockClock) -> None:
        self._time = time
        self._start = SystemClock().wall() - time.current_time()

    def monotonic(self) -> float:
        return self._time.current_time()

    def wall(self) -> float:
        return self._start + self._time.current_time()


def write_settings(folder: Path, place: Place) -> Path:
    """Write a platform's settings file, filled in, with its model's script."""
    if not (folder / "agents").exists():
        shutil.copytree(CONFIG / "agents", folder / "agents")
    script = SCRIPT.replace('fail = "hang"', 'reply = "Back again."')
    script = script if place.has_crashed else SCRIPT
    (folder / "offline_script.toml").write_text(script, encoding="utf-8")
    text = (CONFIG / f"{place.file}.toml").read_text(encoding="utf-8")
    for before, after in place.filled_in:
        assert before in text, before
        text = text.replace(before, after)
    text += PATIENT + ("" if "[agents.ben]" in text else BEN)
    path = folder / "callboard.toml"
    path.write_text(text + place.more, encoding="utf-8")
    return path


@asynccontextmanager
async def running(
    folder: Path, place: Place, time: trio.testing.MockClock
) -> AsyncGenerator[App]:
    """Run the company of a platform, with people before it, until the block ends."""
    config = load_app(write_settings(folder, place), place.secrets).value
    made, clock = place.transports(config), FastClock(time)
    async with open_app(config, made, clock=clock) as app, place.people(app):
        yield app


async def crash(app: App, folder: Path) -> None:
    """Keep the files as a kill would leave them in the middle of an answer."""

    async def is_running() -> int:
        return (await app.store.counts()).inbox.get("running", 0)

    await until(is_running)
    sockets = shutil.ignore_patterns("*.socket")  # a crash leaves them, nobody copies
    shutil.copytree(folder / "var", folder / "left", ignore=sockets)


def after_crash(folder: Path, place: Place) -> None:
    """Put back what the kill left; from now on the model answers."""
    place.has_crashed = True
    shutil.rmtree(folder / "var")
    (folder / "left").rename(folder / "var")
