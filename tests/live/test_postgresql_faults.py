"""Proves that a company on PostgreSQL loses and doubles nothing, whatever is killed.

`CALLBOARD_FAULTS=50 pytest -m live tests/live/test_postgresql_faults.py` takes longer.
"""

from __future__ import annotations

import itertools
import os
import signal
import ssl
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import trio
import trio.testing

from tests.fakes.store.cut_proxy import CutProxy
from tests.processes.running import PATIENCE, Server, served
from tests.support.store.postgresql import ServerProcess

FAULTS = int(os.environ.get("CALLBOARD_FAULTS", "10"))
CHATS = 6
BETWEEN = 5
"""Answers between two faults."""

PAUSE = 0.02
"""Seconds for which all must be at rest before somebody looks again. One for all: of
those that wait so, trio wakes only who waits for the shortest time, so who looks again
and again would keep everybody else waiting for ever."""

CONTEXT = ssl.create_default_context()
"""Made once: each that a client makes for itself keeps all people here waiting for a
part of a second, on a busy machine, and what they wait for is measured."""

APOLOGY = "an apology"
STARVED = "blocked the loop for"
"""What the log says of a turn that was ended because this machine gave its process no
processor for seconds; of nothing else may anybody read an apology."""

KINDS = ("kill callboard", "lose answer", "cut", "kill server", "lose request")


class Company:
    """A company on a server behind a proxy, and people who write to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = ServerProcess("fsync=on", "autovacuum=on")
        self.proxy = CutProxy(self.database.folder / ".s.PGSQL.5432")
        self.answered = 0
        self.apologies = 0
        """Messages whose turn failed; asked again, a client gets the same apology."""

        self.is_over = False
        self.sent = dict.fromkeys(range(CHATS), 0)
        self.asked: dict[int, float] = {}
        """By chat, when its message was written that is not answered yet."""

        self.waited: list[tuple[int, float, float]] = []
        """Of each message its chat, when it was written, and answered; seconds."""

        self.server: Server | None = None
        self._stack = ExitStack()
        self.dsn = (
            f"host=127.0.0.1 port={self.proxy.port} user=callboard dbname=postgres"
        )

    def start(self) -> None:
        """Start Callboard."""
        company = served(
            self.folder,
            CALLBOARD_STORE__KIND="postgresql",
            CALLBOARD_STORE__DSN='{ env = "CB_DSN" }',
            CB_DSN=self.dsn,
        )
        self.server = self._stack.enter_context(company)

    async def kill(self) -> None:
        """Kill Callboard."""
        assert self.server is not None
        server, self.server = self.server, None
        await server.end(signal.SIGKILL)
        self._stack.close()

    async def talk(self, chat: int) -> None:
        """Write one message after the other, each until it is answered."""
        while not self.is_over:
            number = self.sent[chat]
            self.asked[chat] = trio.current_time()
            answer = ""
            while not answer:
                answer = await self.ask(f"chat{chat}", f"{chat}-{number}")
            assert answer in {f"you said {chat}-{number}", APOLOGY}
            self.apologies += answer == APOLOGY
            self.waited.append((chat, self.asked.pop(chat), trio.current_time()))
            self.sent[chat] += 1
            self.answered += 1

    def entrance(self) -> Server | None:
        """Give whom to write to; None: nobody is there now."""
        return self.server

    async def ask(self, chat: str, words: str, key: str = "") -> str:
        """Write once; empty if there was no answer."""
        server = self.entrance()
        if server is None:
            await trio.testing.wait_all_tasks_blocked(PAUSE)
            return ""
        body = {"model": "anna", "messages": [{"role": "user", "content": words}]}
        headers = {"x-callboard-conversation": chat, "idempotency-key": key or words}
        try:
            async with httpx.AsyncClient(
                base_url=server.url, timeout=20, verify=CONTEXT
            ) as client:
                said = await client.post(
                    "/v1/chat/completions", json=body, headers=headers
                )
        except httpx.HTTPError:
            return ""
        if said.status_code == 500 and "no_answer" in said.text:
            return APOLOGY
        if said.status_code != 200:
            assert said.status_code in {409, 429, 500, 502, 503, 504}, said.text
            await trio.testing.wait_all_tasks_blocked(PAUSE)
            return ""
        return str(said.json()["choices"][0]["message"]["content"])

    async def fault(self, kind: str) -> None:
        """Let something go wrong."""
        match kind:
            case "kill callboard":
                await self.kill()
                await trio.to_thread.run_sync(self.start)
            case "kill server":
                self.database.kill()
                await trio.to_thread.run_sync(self.database.start)
            case "cut":
                self.proxy.cut()
            case _:
                self.proxy.losing = "answer" if "answer" in kind else "request"
        await self.wait_answers(BETWEEN)

    async def wait_answers(self, count: int) -> None:
        """Wait until so many more were answered."""
        end = self.answered + count
        while self.answered < end:
            await trio.testing.wait_all_tasks_blocked(PAUSE)

    def log(self) -> str:
        """Give what Callboard has said."""
        return (self.folder / "stderr").read_text()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Read the database."""
        with psycopg.connect(self.database.dsn("postgres")) as db:
            return db.execute(query.encode()).fetchall()

    def end(self) -> None:
        """End all that was started."""
        self._stack.close()
        self.proxy.close()
        self.database.end()


@pytest.mark.live
@pytest.mark.timeout(0)
async def test_nothing_is_lost_or_doubled_whatever_is_killed(tmp_path: Path) -> None:
    company = Company(tmp_path)
    try:
        company.start()
        with trio.fail_after((10 + FAULTS) * PATIENCE):
            async with trio.open_nursery() as nursery:
                for chat in range(CHATS):
                    nursery.start_soon(company.talk, chat)
                await company.wait_answers(BETWEEN)
                for kind in itertools.islice(itertools.cycle(KINDS), FAULTS):
                    await company.fault(kind)
                company.is_over = True
        assert company.server is not None
        assert await company.server.end() == 0
        check(company, FAULTS)
        assert "Traceback" not in company.server.log
    finally:
        company.end()


def check(company: Company, faults: int) -> None:
    """Compare what was answered with what is stored."""
    total = sum(company.sent.values())
    assert total >= faults * BETWEEN
    settled = "SELECT state, count(*) FROM inbox GROUP BY state"
    assert company.rows(settled) == [("replied", total)]
    # Whoever was cut off asked once more, and got the answer that was stored: then the
    # first delivery found nobody.
    sent = "SELECT count(*), count(DISTINCT correlation_id) FROM outbox"
    assert company.rows(sent) == [(total, total)]
    assert company.apologies <= company.log().count(STARVED)
    gaps = """SELECT stream FROM journal GROUP BY stream
        HAVING max(sequence) <> count(*)"""
    assert company.rows(gaps) == []
    # Each conversation has heard each message once, in the order they were written.
    heard = """SELECT stream, convert_from(body, 'UTF8') FROM inbox ORDER BY number"""
    told: dict[str, list[str]] = {}
    for stream, body in company.rows(heard):
        told.setdefault(stream, []).append(body)
    for chat, count in company.sent.items():
        bodies = [each for each in told.values() if f'"{chat}-0"' in each[0]]
        assert len(bodies) == 1
        assert len(bodies[0]) == count
        for number, body in enumerate(bodies[0]):
            assert f'"{chat}-{number}"' in body
