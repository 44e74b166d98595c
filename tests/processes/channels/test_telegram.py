"""Proves that the whole program speaks on Telegram, through kills and with a rival."""

from __future__ import annotations

import re
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.fakes.telegram.api import FakeTelegram
from tests.fakes.telegram.chats import Chat
from tests.fakes.telegram.server import on_a_socket
from tests.processes.running import PATIENCE, rows, run, served
from tests.support.chat.telegram_bed import ZOE

MORE = """
[presence]
drafts = {drafts}
draft_after = 0.0
draft_chars = 1
reactions = false

[connectors.telegram]
kind = "telegram"
api_url = "{url}"
pace = 0.0
draft_pace = 0.0
per_minute = 0

[connectors.telegram.access]
people = "anyone"

[connectors.telegram.accounts.anna]
token = {{ env = "TOKEN" }}
"""
KILLS = 2
"""Below `retries.attempts`: what three starts did not end is given up, and said so."""

CHATS = 6


@asynccontextmanager
async def telegram() -> AsyncGenerator[tuple[FakeTelegram, str, str]]:
    """Run a Bot API on a socket; gives it, its address and a token."""
    server = FakeTelegram()
    # Another number each time: programs that run at the same time keep others out.
    token = server.bot(trio.lowlevel.current_task().__hash__() % 10**9 + 10, "anna_bot")
    async with on_a_socket(server) as url:
        with trio.fail_after(2 * PATIENCE):
            yield server, url, token


async def wait(server: FakeTelegram, is_so: Callable[[], bool]) -> None:
    """Wait until something is said that makes it so."""
    while not is_so():
        await server.wait_change()


async def wait_sent(server: FakeTelegram, more: int) -> None:
    """Wait until so many further messages were sent."""
    before = server.count("sendMessage")
    await wait(server, lambda: server.count("sendMessage") >= before + more)


def is_answered(chat: Chat, server: FakeTelegram, text: str) -> bool:
    return text in chat.texts(server.named("anna_bot"))


async def test_somebody_writes_and_is_answered_while_it_is_written(
    tmp_path: Path,
) -> None:
    async with telegram() as (server, url, token):
        chat = server.private(1, "anna_bot")
        more = MORE.format(url=url, drafts="true")
        with served(tmp_path, more=more, TOKEN=token) as program:
            server.say(chat, ZOE, "slowly one two three four five")
            answer = "one two three four five"
            await wait(server, lambda: is_answered(chat, server, answer))
            server.say(
                chat,
                ZOE,
                "/who",
                entities=[{"type": "bot_command", "offset": 0, "length": 4}],
            )
            await wait(server, lambda: len(chat.by(server.named("anna_bot"))) == 2)
            assert await program.end() == 0
            assert token.partition(":")[2] not in program.log
        assert server.count("editMessageText") >= 1
        assert chat.typing
        said = await trio.to_thread.run_sync(
            lambda: run("doctor", "--all", folder=tmp_path, TOKEN=token)
        )
    assert "accounts.anna: let in as @anna_bot" in said.out
    assert token not in said.said


@pytest.mark.deep
async def test_what_people_wrote_outlives_kills(tmp_path: Path) -> None:
    async with telegram() as (server, url, token):
        chats = [server.private(number, "anna_bot") for number in range(1, CHATS + 1)]
        more = MORE.format(url=url, drafts="false")
        for kill in range(KILLS):
            with served(tmp_path, more=more, TOKEN=token) as program:
                for chat in chats:
                    for number in range(5):
                        server.say(chat, {**ZOE, "id": chat.id}, f"{kill}.{number}")
                await wait_sent(server, 4)
                await program.end(signal.SIGKILL)
        wanted = {f"you said {k}.{n}" for k in range(KILLS) for n in range(5)}
        bot = server.named("anna_bot")
        with served(tmp_path, more=more, TOKEN=token) as program:
            await wait(server, lambda: all(wanted <= {*c.texts(bot)} for c in chats))
            await wait(server, lambda: not bot.updates)
            assert await program.end() == 0
    texts = [text for chat in chats for text in chat.texts(bot)]
    # Nobody knows of one in the moment of a kill: it is said again.
    assert len(texts) - len(wanted) * CHATS <= KILLS * CHATS
    assert rows(tmp_path, "SELECT count(*) FROM inbox") == [(len(wanted) * CHATS,)]


async def test_a_second_program_waits_until_the_first_has_ended(
    tmp_path: Path,
) -> None:
    async with telegram() as (server, url, token):
        chat = server.private(1, "anna_bot")
        more = MORE.format(url=url, drafts="false")
        with (
            served(tmp_path / "one", more=more, TOKEN=token) as first,
            served(tmp_path / "two", more=more, TOKEN=token) as second,
        ):
            server.say(chat, ZOE, "who is there?")
            await wait(
                server, lambda: is_answered(chat, server, "you said who is there?")
            )
            await wait(server, lambda: "hears bot" in second.log)
            assert await first.end() == 0
            server.say(chat, ZOE, "and now?")
            await wait(server, lambda: is_answered(chat, server, "you said and now?"))
            assert await second.end() == 0
        assert server.polled_at_once == 0
    assert re.search("another program on this machine hears bot", second.log)
    assert rows(tmp_path / "two", "SELECT count(*) FROM inbox") == [(1,)]
