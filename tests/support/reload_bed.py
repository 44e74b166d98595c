"""Reloads under load: a company whose settings change all the time while people write.

    python -m tests.support.reload_bed 1000

Real settings files, the real database, real HTTP on this machine; the model is the
scripted one. Every message must be answered once, and rightly, whatever changes.
"""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import socket
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import apsw
import httpx
import trio

from connectors.app.app import App, open_app
from connectors.app.reload.reload import Reloading, SettingsSource, Ways, files_of
from connectors.chat.platforms import serving
from connectors.settings.load import load_app
from connectors.web.openai.transport import HttpTransport
from runtime.telemetry.logs import Redactor, writing

PATIENCE = 60.0
"""Seconds after which an answer counts as lost."""

WRITERS = 8

SIDEWAYS = 5_000_001
"""Added to the numbers of what is said by the other connector."""

BASE = """
default_agent = "anna"
[log]
level = "{level}"
[store]
path = "{folder}/callboard.db"
[models.scripted]
kind = "scripted"
script = "script.toml"
[connectors.http]
kind = "http"
port = 0
[agents.anna]
prompt = "You are Anna, number {number}."
delegates = ["ben"]
[agents.ben]
prompt = "You are Ben."
tools = ["calculate"]
"""

SCRIPT = r"""
[default]
reply = "anna heard {0}"

[[rule]]
pattern = '\Aslowly (?P<words>.+)'
reply = "slowly heard {words}"
delay = 0.05

[[rule]]
pattern = '\Asum (?P<sum>.+)'
agent = "ben"
tool = [{ name = "calculate", arguments = { expression = "{sum}" } }]

[[rule]]
on_tool = "calculate"
reply = "it is {0}"

[[rule]]
agent = "mia"
pattern = '\A(?P<words>w.+)'
reply = "mia heard {words}"
delay = 0.05

[[rule]]
agent = "ben"
pattern = '\A(?P<words>w.+)'
reply = "ben heard {words}"
"""

MISTAKES = ('[limits]\nmax_open = "many"\n', "[[[\n", '[agents.anna]\nmodel = "none"\n')

MORE = (
    '[agents.mia]\nprompt = "You are Mia."\n',
    "[limits]\nmax_in_flight = 3\nmax_open = 300\n",
    '[[routes]]\nagent = "ben"\nchat = "ben-*"\n',
    '[[permissions]]\nask = ["run_shell"]\n',
    '[[busy_policies]]\nagent = "ben"\npolicy = "followup"\n',
    "[memory]\nenabled = false\n",
    '[agents.mia]\nprompt = "You are Mia."\ntools = ["http_fetch"]\n',
    "[scheduler]\nis_on = false\n",
    '[[budgets]]\nscope = "all"\nhard_tokens = 100000000\n',
    "[sessions]\nidle_after = 1.0\n",
    '[models.more]\nkind = "scripted"\nscript = "script.toml"\n',
    '[presence]\nplaceholder = "…"\n',
    '[people]\nlanguage = "de"\n',
)

SIDE = """
[connectors.side]
kind = "http"
port = {port}
max_connections = {most}
"""


@dataclass
class Told:
    """What became of everything."""

    outcomes: Counter[str] = field(default_factory=Counter[str])
    """Of reloads."""

    answers: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])
    broken_off: list[str] = field(default_factory=list[str])
    """What was said on connections that broke off."""

    unheard: int = 0
    """How much of that was taken in all the same."""

    unsettled: int = 0
    unanswered: int = 0
    """Messages that were settled without an answer of the agent: it was gone."""

    twice: int = 0
    again: int = 0
    """Messages whose turn was begun more than once."""


class Bed:
    """A company, its settings, and those who write.

    Args:
        folder: where everything lies.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.told = Told()
        self.is_over = False
        (folder / "script.toml").write_text(SCRIPT, encoding="utf-8")
        self.write(0)

    def write(self, number: int) -> Path:
        """Write the settings of one reload; no two in a row are the same."""
        level = ("error", "warning")[number % 2]
        text = BASE.format(folder=self.folder, number=number, level=level)
        if number % 11 == 5:
            text += MISTAKES[number % len(MISTAKES)]
        elif number:
            text += MORE[number % len(MORE)]
        if number % 7 in (3, 4, 5):
            most = 100 + number % 5 // 4
            text += SIDE.format(port=self.port, most=most)
        path = self.folder / "callboard.toml"
        path.write_text(text, encoding="utf-8")
        return path

    async def write_on(self, app: App, who: int) -> None:
        """Be somebody who writes until it is over."""
        transport = app.transports["http"]
        assert isinstance(transport, HttpTransport)
        host, port = await transport.wait_listening()
        here, side = f"http://{host}:{port}", f"http://127.0.0.1:{self.port}"
        async with httpx.AsyncClient(timeout=PATIENCE) as client:
            number = 0
            while not self.is_over:
                number += 1
                await self.say(client, here, saying(who, number))
                if number % 5 == 0:
                    await self.say(client, side, saying(who, number + SIDEWAYS))

    async def say(
        self, client: httpx.AsyncClient, url: str, what: tuple[str, str, str]
    ) -> None:
        """Say something, again if it was refused; note what is answered."""
        agent, words, expected = what
        asked = {"model": agent, "messages": [{"role": "user", "content": words}]}
        is_side = url.endswith(str(self.port))
        while True:
            try:
                answer = await client.post(f"{url}/v1/chat/completions", json=asked)
            except httpx.ConnectError:
                if is_side:  # it is not open now
                    return
                raise
            except httpx.TransportError as error:
                self.told.answers[f"broken off: {type(error).__name__}"] += 1
                self.told.broken_off.append(words)
                return
            if answer.status_code != 503:
                break
            self.told.answers["asked again"] += 1
            if is_side or self.is_over:
                return
            await trio.lowlevel.checkpoint()
        self.judge(answer, words, expected)

    def judge(self, answer: httpx.Response, words: str, expected: str) -> None:
        """See whether an answer is the right one."""
        is_gone = answer.status_code == 404 or "There is no agent" in answer.text
        if is_gone and expected.startswith("mia"):
            self.told.answers[f"not here now: {answer.status_code}"] += 1
        elif answer.status_code != 200:
            self.note(f"status {answer.status_code}", f"{words}: {answer.text}")
        elif expected not in (said := content_of(answer)):
            self.note("wrong", f"{words}: {said}")
        else:
            self.told.answers["right"] += 1

    def note(self, what: str, words: str) -> None:
        self.told.answers[what] += 1
        self.told.wrong.append(f"{what}: {words}")

    def count(self) -> None:
        """Count in the database what was left, or said or begun twice."""
        db = apsw.Connection(
            f"file:{self.folder / 'callboard.db'}?mode=ro",
            flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
        )
        unsettled = "SELECT count(*) FROM inbox WHERE settled_at IS NULL"
        self.told.unsettled = one(db, unsettled)
        unanswered = "SELECT count(*) FROM inbox WHERE state <> 'replied'"
        self.told.unanswered = one(db, unanswered)
        self.told.again = one(db, "SELECT count(*) FROM inbox WHERE attempts > 1")
        self.told.twice = one(
            db,
            "SELECT count(*) FROM (SELECT correlation_id FROM outbox"
            " GROUP BY correlation_id HAVING count(*) > 1)",
        )
        taken = "SELECT count(*) FROM inbox WHERE instr(body, ?) > 0"
        for words in self.told.broken_off:
            ((count,),) = db.execute(taken, (f'"{words}"'.encode(),))
            self.told.unheard += bool(count)
        db.close()


def one(db: apsw.Connection, query: str) -> int:
    ((count,),) = db.execute(query)
    assert isinstance(count, int)
    return count


def content_of(answer: httpx.Response) -> str:
    return str(answer.json()["choices"][0]["message"]["content"])


def saying(who: int, number: int) -> tuple[str, str, str]:
    """Give whom to ask, what, and what must be in the answer."""
    words = f"w{who} n{number}"
    match (who + number) % 5:
        case 0:
            return (
                "ben",
                f"sum {who} * 10000000 + {number}",
                f"{who * 10_000_000 + number}",
            )
        case 1:
            return "anna", f"slowly {words}", f"slowly heard {words}"
        case 2:
            return "ben", words, f"ben heard {words}"
        case 3:
            return "mia", words, f"mia heard {words}"
        case _:
            return "anna", words, f"anna heard {words}"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@asynccontextmanager
async def loaded_company(bed: Bed) -> AsyncGenerator[tuple[App, Reloading]]:
    """Open the company, with people who write while the block runs."""
    load = partial(load_app, bed.folder / "callboard.toml", {})
    with writing(level="error") as lines:
        source = SettingsSource(load(), load, Redactor(), lines)
        config, private = source.settings.value, files_of(source.settings)
        async with open_app(config, serving(config), private=private) as app:
            reloading = Reloading(app, config, source, Ways(serves=serving))
            async with trio.open_nursery() as nursery:
                for who in range(WRITERS):
                    nursery.start_soon(bed.write_on, app, who)
                yield app, reloading
                bed.is_over = True
            await app.drain(PATIENCE)


async def reload_often(folder: Path, times: int) -> Told:
    """Change the settings so many times while people write; tell what came of it."""
    bed = Bed(folder)
    async with loaded_company(bed) as (_, reloading):
        for number in range(1, times + 1):
            bed.write(number)
            bed.told.outcomes[await reloading.reload() or "refused before"] += 1
    bed.count()
    return bed.told


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        began = trio.run(reload_often, Path(place), int(sys.argv[1]))
    print(began)  # noqa: T201  its output is what it is for
