"""Proves that what was said on the page outlives kills, and stands there once."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx
import pytest
import trio

from tests.fakes.web.page import ANNA, JSON, form_of, one_line, reading, said_in
from tests.processes.running import PATIENCE, Server, run, served

MORE = """
[connectors.page]
kind = "page"
port = 0
"""
KILLS = 2
EACH = 4


def address_of(program: Server) -> str:
    """Read where the page is: the line after that of the HTTP server."""
    assert program.process.stdout is not None
    line = program.process.stdout.readline()
    assert line.startswith("page: listening on "), line
    return line.split()[-1]


async def log_in(folder: Path, client: httpx.AsyncClient) -> None:
    made = await trio.to_thread.run_sync(
        lambda: run("login", "--config", "callboard.toml", folder=folder)
    )
    token = made.out.strip().rpartition("/")[2]
    entered = await client.post("/login", data={"token": token})
    assert entered.status_code == 303, made.said


async def say(client: httpx.AsyncClient, text: str) -> None:
    form = form_of((await client.get(ANNA)).text) | {"text": text, "key": text}
    sent = await client.post(ANNA, data=form, headers=JSON)
    assert sent.status_code == 202


def wanted(kill: int) -> list[str]:
    return [f"answer {kill} {number} is here" for number in range(EACH)]


async def speak(client: httpx.AsyncClient, texts: list[str]) -> None:
    """Say all that, and wait until an answer is half written."""
    async with reading(client) as stream:
        for text in texts:
            await say(client, f"slowly {text}")
        while "aria-busy" not in (await stream.next()).data:
            pass


async def wait_answered(client: httpx.AsyncClient, texts: set[str]) -> None:
    async with reading(client, after=1) as stream:
        while texts:
            event = await stream.next()
            if "aria-busy" not in event.data:
                texts.discard(one_line(event.data).removeprefix("anna: "))


@pytest.mark.deep
async def test_what_was_said_stands_there_once_after_kills(tmp_path: Path) -> None:
    jar = httpx.Cookies()
    for kill in range(KILLS):
        with served(tmp_path, more=MORE) as program, trio.fail_after(PATIENCE):
            url = address_of(program)
            async with httpx.AsyncClient(base_url=url, cookies=jar) as client:
                if not kill:
                    await log_in(tmp_path, client)
                    jar = client.cookies
                await speak(client, wanted(kill))
                await program.end(signal.SIGKILL)
    texts = [each for kill in range(KILLS) for each in wanted(kill)]
    with served(tmp_path, more=MORE) as program, trio.fail_after(2 * PATIENCE):
        url = address_of(program)
        async with httpx.AsyncClient(base_url=url, cookies=jar) as client:
            await wait_answered(client, {*texts})
            lines = said_in((await client.get(ANNA)).text)
        assert await program.end() == 0
    asked = [f"operator: slowly {each}" for each in texts]
    assert sorted(lines) == sorted([*asked, *(f"anna: {each}" for each in texts)])
