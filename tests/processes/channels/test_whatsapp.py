"""Proves that the whole program speaks on WhatsApp, through kills."""

from __future__ import annotations

import signal
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path

import httpx
import pytest
import trio

from runtime.clock import SystemClock
from tests.fakes.whatsapp.graph import SECRET, FakeGraph, sign
from tests.fakes.whatsapp.server import open_graph
from tests.processes.running import PATIENCE, Server, rows, run, served
from tests.support.chat.whatsapp_bed import ANNA, TOKEN

MORE = """
[presence]
reactions = false

[connectors.whatsapp]
kind = "whatsapp"
app_secret = {{ env = "APP" }}
verify_token = {{ env = "VERIFY" }}
graph_url = "{url}"
pace = 0.0

[connectors.whatsapp.access]
people = "anyone"

[connectors.whatsapp.accounts.anna]
phone_number_id = "{number}"
access_token = {{ env = "TOKEN" }}
"""
KILLS = 2
"""Below `retries.attempts`: what three starts did not end is given up, and said so."""

PEOPLE = [f"49170{number}" for number in range(6)]
EACH = 5


class Meta:
    """Brings what people write until it is answered 200, as Meta does.

    Args:
        graph: what it knows.
        url: where its Graph API is.
    """

    def __init__(self, graph: FakeGraph, url: str) -> None:
        self.graph = graph
        self.more = MORE.format(url=url, number=ANNA)
        self.token = graph.number(ANNA)
        self.waiting: list[bytes] = []
        """Webhooks that are not answered 200 yet, oldest first."""

        self.taken = 0

    @property
    def secrets(self) -> tuple[str, str, str]:
        """What is never to be seen."""
        return SECRET, TOKEN, self.token

    def serve(self, folder: Path) -> AbstractContextManager[Server]:
        """Run the program during the block."""
        return served(
            folder, more=self.more, APP=SECRET, VERIFY=TOKEN, TOKEN=self.token
        )

    def write(self, person: str, *texts: str) -> None:
        """Have somebody write; all of it comes in one webhook."""
        now = int(SystemClock().wall())
        messages = [self.graph.message(text, person, at=now) for text in texts]
        self.waiting.append(self.graph.webhook(ANNA, *messages))

    async def bring(self, program: Server) -> None:
        """Bring what waits, one after the other; ends when nothing does."""
        address = f"{program.url}/platforms/whatsapp"
        async with httpx.AsyncClient(timeout=10) as client:
            while self.waiting:
                body = self.waiting[0]
                headers = {
                    "content-type": "application/json",
                    "x-hub-signature-256": sign(body),
                }
                try:
                    answer = await client.post(address, content=body, headers=headers)
                except httpx.TransportError:
                    return  # it was killed
                if answer.status_code == 200:
                    self.waiting.remove(body)
                    self.taken += 1


async def wait_said(graph: FakeGraph, more: int) -> None:
    """Wait until so many further messages were said."""
    enough = len(graph.said) + more
    await graph.wait(lambda: len(graph.said) >= enough)


@asynccontextmanager
async def whatsapp() -> AsyncGenerator[Meta]:
    """Run the Graph API on a socket."""
    graph = FakeGraph()
    async with open_graph(graph) as url:
        with trio.fail_after(3 * PATIENCE):
            yield Meta(graph, url)


async def test_the_handshake_somebody_writes_and_doctor_looks(tmp_path: Path) -> None:
    async with whatsapp() as meta:
        with meta.serve(tmp_path) as program:
            query = {"hub.mode": "subscribe", "hub.verify_token": TOKEN}
            async with httpx.AsyncClient(base_url=program.url, timeout=10) as client:
                greeted = await client.get(
                    "/platforms/whatsapp", params={**query, "hub.challenge": "17"}
                )
            assert (greeted.status_code, greeted.text) == (200, "17")
            meta.write(PEOPLE[0], "hello")
            await meta.bring(program)
            await meta.graph.wait(lambda: bool(meta.graph.texts()), within=PATIENCE)
            assert meta.graph.texts(PEOPLE[0]) == ["you said hello"]
            assert await program.end() == 0
            for secret in meta.secrets:
                assert secret not in program.log
        said = await trio.to_thread.run_sync(
            lambda: run(
                "doctor",
                "--all",
                folder=tmp_path,
                APP=SECRET,
                VERIFY=TOKEN,
                TOKEN=meta.token,
            )
        )
    assert "accounts.anna: the number +1 555 0001, Anna can be used" in said.out
    assert "Meta does not say that it calls anybody" in said.out
    for secret in meta.secrets:
        assert secret not in said.said


@pytest.mark.deep
async def test_what_people_wrote_outlives_kills(tmp_path: Path) -> None:
    async with whatsapp() as meta:
        for kill in range(KILLS):
            for person in PEOPLE:
                meta.write(person, *(f"{kill}.{number}" for number in range(EACH)))
            with meta.serve(tmp_path) as program:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(meta.bring, program)
                    await wait_said(meta.graph, 4)
                    await program.end(signal.SIGKILL)
                    nursery.cancel_scope.cancel()
        wanted = {f"you said {k}.{n}" for k in range(KILLS) for n in range(EACH)}
        with meta.serve(tmp_path) as program:
            await meta.bring(program)
            await meta.graph.wait(
                lambda: all(wanted <= {*meta.graph.texts(each)} for each in PEOPLE)
            )
            assert await program.end() == 0
    said = meta.graph.texts()
    # Nobody knows of one in the moment of a kill: it is said again.
    assert len(said) - len(wanted) * len(PEOPLE) <= KILLS * len(PEOPLE)
    assert rows(tmp_path, "SELECT count(*) FROM inbox") == [
        (len(wanted) * len(PEOPLE),)
    ]
    first = [text for text in meta.graph.texts(PEOPLE[0]) if "said 0." in text]
    assert sorted({*first}) == [f"you said 0.{n}" for n in range(EACH)]
