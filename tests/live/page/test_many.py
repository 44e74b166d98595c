"""The page with very much in it: 10,000 actors, texts of 2 MB, names in every script.

What it proves, and how long things take, is in `many.mjs`; `setup.sh` fetches Chromium
and what drives it. The figures are left in `.live/many.json`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio

from actors.people.identity import Person
from actors.people.rows import as_entry
from runtime.clock import SystemClock
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import Commit
from tests.pictures import LIVE, ROOT, drive, fill, login_link, serving, write_settings

pytestmark = pytest.mark.live

MANY = 10_000
"""Actors, and people who are known."""

AGENTS = 1_100
"""Agents: each has nine actors or more of its own."""

LONG = 2_000_000
"""Characters of one message, and of one answer."""

NAMES = (
    "Sam",
    "지민 김",
    "Олег Ёлкин",
    "فاطمة الزهراء",
    "דָּוִד בֶּן־גּוּרְיוֹן",
    "ราชวงศ์ วัฒนธรรม",
    "देवनागरी क्षत्रिय",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "Z̸̡̛͓̮̑͂a̴͖͗l̵͕͝g̷͚̈o̶",
    "\u202eevil\u202c",
    "Maximilian-Alexander" * 20,
    "x" * 500,
    "   ",
    "<b>bold</b> & 'quoted'",
)


async def fill_much(path: Path) -> None:
    """Write a company's database, with very many people known to it."""
    await fill(path)
    store, now = await SqliteStore.open(SqliteFile(path)), SystemClock().wall()
    for first in range(0, MANY, 500):
        people = tuple(
            as_entry(Person(f"page/u{each}", NAMES[each % len(NAMES)], "en"), 0)
            for each in range(first, first + 500)
        )
        await store.commit(Commit(at=now, entries=people))
    await store.aclose()


def write_much_settings(folder: Path) -> Path:
    """Write settings with a model that says `very much …` again."""
    path = write_settings(folder)
    text = path.read_text(encoding="utf-8")
    script = text.partition('script = "')[2].partition('"')[0]
    rules = "[[rule]]\npattern = '(?s)^very much.*'\nreply = \"{0}\"\n\n"
    own = folder / "script.toml"
    given = Path(script).read_text(encoding="utf-8")
    head, rule, rest = given.partition("[[rule]]")
    own.write_text(head + rules + rule + rest, encoding="utf-8")
    text = text.replace(script, str(own))
    text = text.replace('kind = "page"', f'kind = "page"\nmax_body_bytes = {3 * LONG}')
    text += f"\n[limits]\nmax_message_chars = {2 * LONG}\n"
    persona = ROOT / "config" / "agents" / "ben"
    text += "".join(
        f'\n[agents.agent{each}]\ndisplay_name = "{NAMES[each % 4]} {each}"\n'
        f'persona = "{persona}"\n'
        for each in range(AGENTS)
    )
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.timeout(600)
def test_very_much_is_shown_as_fast_as_little(tmp_path: Path) -> None:
    settings = write_much_settings(tmp_path)
    trio.run(fill_much, tmp_path / "page.db")
    with serving(settings) as address:
        figures = str(LIVE / "many.json")
        drive(
            "many.mjs",
            address,
            login_link(settings),
            str(MANY),
            str(LONG),
            json.dumps(NAMES),
            figures,
        )
