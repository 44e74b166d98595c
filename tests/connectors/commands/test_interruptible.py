"""Proves that Ctrl-C ends what a command awaits between two steps, never inside one."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from connectors.commands.common.running import run_interruptible

COMMANDS = Path(__file__).parents[3] / "connectors" / "commands"


@pytest.fixture(autouse=True)
def usual_ctrl_c() -> Iterator[None]:
    """Have Ctrl-C mean what it means to a program that has just begun."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_waits_for_the_end_of_a_step() -> None:
    done: list[str] = []

    async def work() -> None:
        signal.raise_signal(signal.SIGINT)
        done.append("the step")
        await trio.lowlevel.checkpoint()
        done.append("the next one")

    with pytest.raises(KeyboardInterrupt):
        run_interruptible(work)
    assert done == ["the step"]


def test_ctrl_c_wakes_what_waits() -> None:
    async def work() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(BaseExceptionGroup) as caught:
        run_interruptible(work)
    assert caught.group_contains(KeyboardInterrupt)


def test_what_was_worked_out_comes_back() -> None:
    async def work(first: int, second: int) -> int:
        await trio.lowlevel.checkpoint()
        return first + second

    assert run_interruptible(work, 2, 3) == 5


def test_no_command_runs_trio_by_itself() -> None:
    files = [each for each in COMMANDS.rglob("*.py") if each.name != "running.py"]
    assert len(files) > 30
    assert not [each.name for each in files if "trio.run(" in each.read_text("utf-8")]
