"""Takes pictures of every view of the page: `python -m tests.pictures FOLDER`.

It writes a company's database, serves it with the embedded model, and has headless
Chromium visit every view in light, in dark, and on a phone. What drives Chromium comes
from `tests/live/setup.sh`.

`python -m tests.pictures terminal FILE.svg` draws a conversation at the terminal, as
`docs/connect/images/terminal.svg` shows it; it needs tmux.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import trio
from rich.console import Console
from rich.text import Text

from actors.journal import commits
from actors.journal.answers import Answer
from actors.journal.history import History
from actors.messages.inbound import Address, Inbound, ToolCall, TranscriptLine, Usage
from actors.messages.keys import session_key
from actors.messages.usage import Run
from actors.people import pairing_rows
from actors.people.identity import Person
from actors.people.pairing_rules import Guest, PairingRequest
from actors.people.rows import as_entry
from actors.turn.machine import ModelReplied, ToolReturned
from runtime.clock import SystemClock
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.facts import SaveFact
from runtime.store.rows import Append, Commit, NewEvent
from tests.support.desk import FAILED, STREAM, SUM, Desk, delivery, write_all

ROOT = Path(__file__).parents[1]
LIVE = ROOT / ".live"
SCRIPTS = Path(__file__).parent / "live" / "page"
CALLBOARD = [sys.executable, "-m", "connectors"]
DAY = 86_400.0
MANY = 180
"""Further messages in the database."""

SAID = (
    ("Can you move the meeting to Thursday?", "Done: Thursday at ten."),
    ("회의를 목요일로 옮겨 줄래요?", "네, 목요일 10시로 옮겼어요."),
    ("¿Quién sabe de impuestos?", "Pregunta a **ben**, sabe de números."),
    ("Wie viel ist 17 % von 2.340?", "397,80."),
    ("هل يمكنك المساعدة؟", "نعم، بكل سرور."),
    ("Summarise the report, please.", "Costs rose, orders fell, six weeks are left."),
    ("What do we pay for hosting?", "About 41 dollars a month since March."),
)
WHO = (
    "Sam",
    "지민",
    "Zoë",
    "Олег",
    "فاطمة",
    "Maximilian-Alexander von und zu Hohenfels",
)
ASKING = (
    ("discord/4711", "Nadia from the other floor", "K7QM2XBP"),
    ("telegram/815", "Пётр", "M3WQ7KXC"),
)
"""Who asks to be let in: account, name and code."""

MODELS = ("big-1", "small-2")
MORE = """
[[budgets]]
scope = "all"
period = "day"
soft_usd = 20.0
hard_usd = 50.0

[agents.cleo]
display_name = "Cleo Papadopoulou-Meyer"
description = "Writes to suppliers, reads what they answer, and never forgets a date."
persona = "agents/ben"
"""


class OnePast:
    """A clock that shows a chosen time."""

    def __init__(self) -> None:
        self.at = 0.0

    def monotonic(self) -> float:
        """Give no time at all."""
        return 0.0

    def wall(self) -> float:
        """Give the chosen time."""
        return self.at


class CompanyWriter:
    """Writes what a company said during the last day."""

    def __init__(self, store: SqliteStore) -> None:
        self._clock = OnePast()
        self._services = replace(Desk(store).services, clock=self._clock)
        self._store = store
        self._histories: dict[str, History] = {}

    async def exchange(self, number: int, at: float) -> None:
        """Write one message of one of many people, and its answer."""
        self._clock.at = at
        text, said = SAID[number % len(SAID)]
        agent = ("anna", "ben", "anna", "cleo")[number % 4]
        person = number % len(WHO)
        inbound = Inbound(
            id=f"02MANY{number:05}",
            platform="terminal",
            platform_id=f"02MANY{number:05}",
            address=Address(("cli", "discord", "slack")[number % 3], f"room-{person}"),
            sender_id=f"person-{person}",
            sender_name=WHO[person],
            text=text,
            received_at=at,
        )
        await self._store.commit(
            Commit(at=at, accepts=(commits.as_accept(inbound, at),))
        )
        key = session_key(inbound, agent, "chat").text
        history = self._histories.setdefault(key, History(key, 20))
        if number % 5 == 0:
            await self._work(f"{key}/{inbound.id}")
        self._clock.at = at + 1.0 + number % 7
        answer = Answer(
            inbound=inbound,
            settled=("replied", "ok") if number % 23 else ("dead", "model"),
            lines=(
                TranscriptLine("user", text, name=inbound.sender_name),
                TranscriptLine("assistant", said, name=agent),
            ),
            run=Run(
                provider="big",
                model=MODELS[number % 2],
                attempt=1,
                seconds=0.6 + number % 7,
                usage=Usage(900 + 37 * (number % 11), 40 + number % 90),
                rounds=1,
                cost=0.004 + 0.002 * (number % 5),
            ),
            deliveries=(delivery(inbound, said, agent),),
        )
        commit = commits.as_exchange(answer, history, self._services)
        committed = await self._store.commit(commit)
        history.take(committed.sequences[-1], commits.as_event(answer), commit.at)

    async def _work(self, stream: str) -> None:
        """Have the model call a tool first."""
        call = ToolCall("call-1", "calculate", b'{"expression":"2340*0.17"}')
        rounds = ("round", ModelReplied("", (call,), Usage(900, 12)))
        returned = ("tool", ToolReturned("call-1", "397.8"))
        for number, (kind, step) in enumerate((rounds, returned)):
            self._clock.at += 0.4
            event = NewEvent(kind, msgspec.json.encode(step))
            journal = Append(stream=stream, expected=number, part=7, events=(event,))
            await self._store.commit(Commit(at=self._clock.at, appends=(journal,)))

    async def people(self, now: float) -> None:
        """Write who is known, who asks to be let in, and what is remembered."""
        entries = [
            as_entry(Person(f"cli/person-{number}", name, "en"), 0)
            for number, name in enumerate(WHO)
        ]
        entries.append(as_entry(Person("cli/sam", "Sam", "en"), 0))
        place = Address("discord", "dm-7")
        asking = [
            PairingRequest(
                account=account,
                name=name,
                address=place,
                code=code,
                asked_at=now - 120,
                told_at=now - 120,
                until=now + 3000,
            )
            for account, name, code in ASKING
        ]
        guest = Guest(
            account="slack/U99",
            name="Tom",
            address=Address("slack", "D1"),
            by="page/operator",
            at=now - DAY,
        )
        entries += [pairing_rows.as_request(each) for each in asking]
        entries.append(pairing_rows.as_guest(guest))
        facts = tuple(
            SaveFact(
                id=f"fact-{number}",
                agent="anna",
                scope="person:cli/sam",
                part=0,
                kind="fact",
                category=category,
                text=text,
                words=tuple(text.lower().encode("ascii", "ignore").decode().split()),
            )
            for number, (category, text) in enumerate(
                (
                    ("user_preference", "likes green tea and short answers"),
                    ("fact", "works from home on Thursdays"),
                    ("fact", "is allergic to peanuts"),
                )
            )
        )
        await self._store.commit(Commit(at=now, entries=tuple(entries), facts=facts))


async def fill(path: Path) -> None:
    """Write a database with every kind of message in it, and a day of ordinary ones."""
    await write_all(path)
    store = await SqliteStore.open(SqliteFile(path))
    writer, now = CompanyWriter(store), SystemClock().wall()
    for number in range(MANY):
        await writer.exchange(number, now - DAY * (1 - number / MANY) - 60)
    await writer.people(now)
    await store.aclose()


def write_settings(folder: Path, more: str = MORE) -> Path:
    """Write settings as `config/page.toml`, on a free port, with `more` at the end."""
    text = (ROOT / "config" / "page.toml").read_text(encoding="utf-8") + more
    text = text.replace('"var/page.db"', f'"{folder / "page.db"}"')
    text = text.replace('kind = "page"', 'kind = "page"\nport = 0')
    for name in ("agents/anna", "agents/ben", "offline_script.toml"):
        text = text.replace(f'"{name}"', f'"{ROOT / "config" / name}"')
    path = folder / "page.toml"
    path.write_text(text, encoding="utf-8")
    return path


@contextmanager
def serving(settings: Path) -> Generator[str]:
    """Serve the page; gives its address."""
    command = [*CALLBOARD, "serve", "--config", str(settings)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, encoding="utf-8", cwd=ROOT
    ) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line, "it did not start"
        try:
            yield line.split()[-1]
        finally:
            server.terminate()
            server.wait(30)


def login_link(settings: Path) -> str:
    """Have a link made; gives its last part."""
    made = subprocess.run(
        [*CALLBOARD, "login", "--config", str(settings)],
        capture_output=True,
        encoding="utf-8",
        check=True,
        cwd=ROOT,
    )
    return made.stdout.strip().rpartition("/")[2]


def drive(script: str, *arguments: str, seconds: float = 600) -> None:
    """Run a script that drives Chromium.

    Raises:
        SystemExit: it failed.
    """
    copy = LIVE / script  # beside the packages that it imports
    shutil.copy(SCRIPTS / script, copy)
    program = shutil.which("chromium") or os.environ.get("CHROMIUM", "chromium")
    command = ["node", str(copy), program, *arguments]
    if done := subprocess.run(command, check=False, timeout=seconds).returncode:
        raise SystemExit(done)


def take(pictures: Path) -> None:
    """Write the company, serve it, and take the pictures."""
    pictures.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as name:
        settings = write_settings(Path(name))
        trio.run(fill, Path(name) / "page.db")
        with serving(settings) as address:
            link = login_link(settings)
            drive("pictures.mjs", address, str(pictures), link, SUM, FAILED, STREAM)


TALK = (
    ("hello, I am Sam", "What can we do for you?"),
    ("what is 12 * 7", "12 * 7 = 84"),
    ("/who", "@ben:"),
)
"""What is typed, and what is waited for then."""

FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
WIDTH, HEIGHT = 84, 26


def tmux(*words: str) -> str:
    """Run tmux, with a server of its own; gives what it says."""
    command = ("tmux", "-L", f"callboard-pictures-{os.getpid()}", *words)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def draw_terminal(picture: Path) -> None:
    """Talk with the offline agents in a terminal, and write what it shows as SVG.

    Raises:
        SystemExit: an answer did not come.
    """
    with TemporaryDirectory() as folder:
        settings = ROOT / "config" / "offline.toml"
        chat = f"{sys.executable} -m connectors chat --config {settings}"
        place = f"cd {ROOT} && CALLBOARD_STORE__PATH={folder}/x.db {chat}"
        size = ("-x", str(WIDTH), "-y", str(HEIGHT))
        tmux("new-session", "-d", *size, place)
        try:
            for typed, awaited in (("", "you"), *TALK):
                if typed:
                    tmux("send-keys", "-l", typed)
                    tmux("send-keys", "Enter")
                for _ in range(600):
                    if awaited in tmux("capture-pane", "-p"):
                        break
                    time.sleep(0.1)  # noqa: TID251  a real terminal has real time
                else:
                    raise SystemExit(f"no {awaited!r}: {tmux('capture-pane', '-p')}")
            shown = tmux("capture-pane", "-ep").rstrip()
        finally:
            tmux("kill-server")
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(shown))
    # Without its web fonts: a page of the docs asks nobody for anything.
    drawn = FONTS.sub("", console.export_svg(title="callboard chat"))
    picture.write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["terminal", file]:
            draw_terminal(Path(file))
        case [name]:
            take(Path(name))
        case _:
            sys.exit("say where to: python -m tests.pictures FOLDER")
