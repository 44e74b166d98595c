"""Proves that a running server hires, hears of the command line, and remembers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import trio

from tests.processes.running import PATIENCE, run_here, served

SCRIPT = """
[default]
reply = "you said {0}"

[[rule]]
pattern = 'hire'
reply = '''
[CREATE_AGENT]
name: carl
description: counts
prompt: You count.
[/CREATE_AGENT]
[DELEGATE:carl] count the chairs [/DELEGATE]
'''
"""

MORE = """
[hiring]
who = "everyone"

[models.leading]
kind = "scripted"
script = "leading.toml"

[agents.boss]
prompt = "You lead."
model = "leading"
is_conductor = true
"""


class Talk:
    """Talks with a server over HTTP.

    Args:
        client: knows where it is.
    """

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def ask(self, agent: str, text: str) -> str:
        body = {"model": agent, "messages": [{"role": "user", "content": text}]}
        answer = await self._client.post("/v1/chat/completions", json=body)
        if answer.status_code != 200:
            return f"status {answer.status_code}"
        return str(answer.json()["choices"][0]["message"]["content"])

    async def names(self) -> list[str]:
        found = (await self._client.get("/v1/models")).json()
        return [each["id"] for each in found["data"]]

    async def wait_names(self, *names: str) -> None:
        with trio.fail_after(PATIENCE):
            while await self.names() != list(names):
                pass


@asynccontextmanager
async def company(folder: Path) -> AsyncGenerator[Talk]:
    (folder / "leading.toml").write_text(SCRIPT, encoding="utf-8")
    with served(folder, more=MORE) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
            yield Talk(client)


async def callboard(folder: Path, *arguments: str) -> str:
    done = await trio.to_thread.run_sync(lambda: run_here(*arguments, folder=folder))
    assert (done.code, done.err) == (0, ""), arguments
    return done.out


async def test_an_agent_is_made_rests_wakes_and_is_there_after_a_restart(
    tmp_path: Path,
) -> None:
    async with company(tmp_path) as talk:
        told = await talk.ask("boss", "hire somebody")
        assert "Agent created: @carl" in told
        assert "count the chairs" in told
        assert await talk.names() == ["anna", "ben", "boss", "carl"]
        assert "how many?" in await talk.ask("carl", "how many?")
        assert "carl is disabled" in await callboard(
            tmp_path, "agents", "disable", "carl"
        )
        await talk.wait_names("anna", "ben", "boss")
        assert await talk.ask("carl", "hello?") == "status 404"
        await callboard(tmp_path, "agents", "enable", "carl")
        await talk.wait_names("anna", "ben", "boss", "carl")
        await callboard(tmp_path, "agents", "disable", "ben")
        await talk.wait_names("anna", "boss", "carl")
    async with company(tmp_path) as talk:
        assert await talk.names() == ["anna", "boss", "carl"]
        assert "how many?" in await talk.ask("carl", "how many?")
