"""Proves that `callboard serve` ends when told to, in order and leaving nothing."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
from pathlib import Path

import httpx
import pytest
import trio
import trio.testing

from tests.processes.running import (
    COMMAND,
    PATIENCE,
    Server,
    environment,
    rows,
    served,
    write_settings,
)

LIMIT = 10.0
"""Seconds an orderly end may take while answers are under way."""

IMPATIENT = "[limits]\ndrain_timeout = 0.5"


async def ask(server: Server, words: str, answers: list[httpx.Response]) -> None:
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
        body = {"model": "anna", "messages": [{"role": "user", "content": words}]}
        answers.append(await client.post("/v1/chat/completions", json=body))


async def ask_in_vain(server: Server) -> None:
    with pytest.raises(httpx.TransportError):
        await ask(server, "never mind", [])


async def wait_accepted(server: Server, count: int) -> None:
    """Wait until so many messages are in the log."""
    with trio.fail_after(PATIENCE):
        while server.log.count("message received") < count:
            await trio.testing.wait_all_tasks_blocked(0.01)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_an_idle_server_ends_at_once(
    number: signal.Signals, tmp_path: Path
) -> None:
    with served(tmp_path) as server, trio.fail_after(LIMIT / 2):
        assert await server.end(number) == 0
    assert without_first_line(server.log) == ""


async def test_answers_under_way_come_or_are_refused(tmp_path: Path) -> None:
    answers: list[httpx.Response] = []
    with served(tmp_path, more=IMPATIENT) as server, trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, server, "later gator", answers)
            nursery.start_soon(ask, server, "never mind", answers)
            await wait_accepted(server, 2)
            assert await server.end() == 0
    codes = sorted(answer.status_code for answer in answers)
    assert codes in ([200, 503], [503, 503])
    assert all(a.json()["error"]["code"] == "stopping" for a in answers if a.is_error)
    assert "Traceback" not in server.log


async def test_what_is_under_way_is_finished_before_the_end(tmp_path: Path) -> None:
    answers: list[httpx.Response] = []
    with served(tmp_path) as server, trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, server, "slowly " + "word " * 25, answers)
            await wait_accepted(server, 1)
            server.process.send_signal(signal.SIGTERM)
            await wait_unready(server)
            await ask(server, "one more", answers)
            assert await server.wait() == 0
    assert [answer.status_code for answer in answers] == [503, 200]
    assert answers[0].json()["error"]["code"] == "stopping"


async def test_a_refused_message_is_answered_after_the_next_start(
    tmp_path: Path,
) -> None:
    answers: list[httpx.Response] = []
    with served(tmp_path, more=IMPATIENT) as server:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, server, "slowly " + "word " * 35, answers)
            await wait_accepted(server, 1)
            assert await server.end() == 0
    assert [answer.status_code for answer in answers] == [503]
    assert rows(tmp_path, "SELECT state FROM inbox") == [("accepted",)]
    with served(tmp_path) as server, trio.fail_after(PATIENCE):
        while rows(tmp_path, "SELECT state FROM inbox") != [("replied",)]:
            await trio.testing.wait_all_tasks_blocked(0.05)
        assert await server.end() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_ends_it_at_once(
    number: signal.Signals, tmp_path: Path
) -> None:
    with served(tmp_path) as server:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask_in_vain, server)
            await wait_accepted(server, 1)
            server.process.send_signal(signal.SIGTERM)
            await wait_unready(server)
            server.process.send_signal(number)
            with trio.fail_after(2):
                code = await server.wait()
    assert code == -number
    assert "Traceback" not in server.log


async def wait_unready(server: Server) -> None:
    """Wait until the server says that it has begun to end."""
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
        with trio.fail_after(PATIENCE):
            while (await client.get("/readyz")).status_code != 503:
                await trio.testing.wait_all_tasks_blocked(0.01)


async def test_a_server_ends_with_its_terminal(tmp_path: Path) -> None:
    above, below = pty.openpty()
    try:
        with served(tmp_path, terminal=below) as server, trio.fail_after(LIMIT / 2):
            os.close(below)
            server.process.send_signal(signal.SIGHUP)  # the terminal is there
            answers: list[httpx.Response] = []
            await ask(server, "hello", answers)
            os.close(above)
            assert await server.wait() == 0
        assert [answer.status_code for answer in answers] == [200]
    finally:
        with contextlib.suppress(OSError):
            os.close(above)


async def test_who_is_to_outlive_the_terminal_does(tmp_path: Path) -> None:
    answers: list[httpx.Response] = []
    # What `nohup` does before it starts a program; the program inherits it.
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with served(tmp_path) as server:
            server.process.send_signal(signal.SIGHUP)
            await ask(server, "hello", answers)
            assert await server.end() == 0
    finally:
        signal.signal(signal.SIGHUP, before)
    assert [answer.status_code for answer in answers] == [200]


def refused(arguments: list[str], folder: Path, output: int, **more: str) -> str:
    """Run a command that fails as its output is not taken; gives what it says."""
    write_settings(folder)
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment(more),
        input="hello\n",
        stdout=output,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    os.close(output)
    assert done.returncode == 1
    return done.stderr


def said_of(why: str) -> str:
    return (
        f"callboard: standard output cannot be written: {why};"
        " direct it to a file or /dev/null that can\n"
    )


def without_first_line(said: str) -> str:
    """Leave out that a new database was made, and the start and end of a server."""
    lines = said.splitlines(keepends=True)
    usual = ("a new database was made", "callboard.serve")
    return "".join(x for x in lines if not any(each in x for each in usual))


COMMANDS = ["serve", "chat", "--help", "config check", "config schema"]


@pytest.mark.parametrize(
    ("command", "unbuffered"),
    [
        *((command, "") for command in COMMANDS),
        # Of those that run until they are stopped, and of those that end by themselves.
        ("chat", "1"),
        ("config check", "1"),
        *(
            pytest.param(command, "1", marks=pytest.mark.deep)
            for command in ("serve", "--help", "config schema")
        ),
    ],
)
def test_output_that_cannot_be_written_is_named(
    command: str, unbuffered: str, tmp_path: Path
) -> None:
    full = os.open("/dev/full", os.O_RDWR)
    said = refused(command.split(), tmp_path, full, PYTHONUNBUFFERED=unbuffered)
    assert without_first_line(said) == said_of("No space left on device")


@pytest.mark.parametrize("command", COMMANDS)
def test_output_that_nobody_reads_is_worth_a_word_to_a_server_only(
    command: str, tmp_path: Path
) -> None:
    reading, output = os.pipe()
    os.close(reading)
    said = refused(command.split(), tmp_path, output)
    expected = said_of("Broken pipe") if command == "serve" else ""
    assert without_first_line(said) == expected
