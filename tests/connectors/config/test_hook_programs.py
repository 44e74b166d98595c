"""A hook's program that hangs, lies, crashes or floods harms nobody but itself."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from actors.hooks.book import AskHook, HookSubject
from actors.hooks.chain import Verdict
from connectors.config.hooks import HookConfig
from connectors.hooks.hook import HOOK, HookError, HookFigures, HookRecord
from connectors.hooks.tree import HookSurroundings, confinement_of, hook_specs
from connectors.sandbox.plan import MIB
from runtime.actor.ref import ActorRef
from runtime.clock import SystemClock
from runtime.supervision.supervisor import Supervisor
from runtime.system import open_system
from runtime.telemetry.metrics import Metrics
from runtime.testing import Reports
from tests.fakes.store.in_memory import MemoryStore
from tests.fakes.tools.sandbox import FakeSandbox

PROGRAM = Path(__file__).parents[2] / "fakes" / "hook_program.py"
ABOUT = HookSubject(id="m1", correlation_id="m1", connector="fake", chat="room")


@dataclass
class Bed:
    """One hook that runs."""

    hook: ActorRef
    store: MemoryStore
    sandbox: FakeSandbox

    async def ask(self, text: str = "hello") -> Verdict:
        asked = AskHook(event="message_received", about=ABOUT, text=text)
        found = await self.hook.ask(asked, timeout=20.0)
        assert isinstance(found, Verdict)
        return found

    async def trouble(self) -> tuple[str, str]:
        with pytest.raises(HookError) as caught:
            await self.ask()
        return caught.value.trouble, str(caught.value)

    async def written(self) -> HookRecord:
        """Give what it last wrote down; wait until it did."""
        with trio.fail_after(10):
            while not (rows := await self.store.records(HOOK)):  # noqa: ASYNC110
                await trio.sleep(0.05)
        return msgspec.json.decode(rows[0].body, type=HookRecord)


def settings(mode: str, **more: Any) -> HookConfig:
    command = (sys.executable, str(PROGRAM), mode)
    quick: dict[str, Any] = {"timeout": 10.0, "restart_first": 0.05, **more}
    return HookConfig(events=("message_received",), command=command, **quick)


@asynccontextmanager
async def running(mode: str, folder: Path, **more: Any) -> AsyncGenerator[Bed]:
    """Run one hook until the block ends."""
    store, sandbox = MemoryStore(), FakeSandbox()
    figures, clock = HookFigures(Metrics()), SystemClock()
    ground = HookSurroundings(sandbox, folder, figures, store, clock)
    specs = hook_specs({"h": settings(mode, **more)}, ground)
    async with open_system(report=Reports()) as system:
        await system.start_root(Supervisor(specs), "own")
        hook = system.find("own/h/hook")
        assert hook is not None
        yield Bed(hook, store, sandbox)


def test_a_program_may_reserve_addresses_as_node_does(tmp_path: Path) -> None:
    limits = confinement_of(settings("good", memory_mb=100), tmp_path).limits
    assert limits.memory == 100 * MIB
    assert (
        limits.addresses >= 64 * 1024 * MIB
    )  # for its own `fetch` Node wants some 8 GiB


@pytest.mark.parametrize(
    ("mode", "verdict"),
    [
        ("good", Verdict()),
        ("shout", Verdict("change", "HELLO")),
        ("refuse", Verdict("cancel", reason="not today")),
        ("nonsense", Verdict()),
    ],
)
async def test_a_program_is_asked_and_answers(
    mode: str, verdict: Verdict, tmp_path: Path
) -> None:
    async with running(mode, tmp_path) as bed:
        assert await bed.ask() == verdict
        assert await bed.ask() == verdict


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("other_place", "unknown field `chat`"),
        ("no_action", "no 'action'"),
        ("bad_action", "destroy"),
        ("empty", "say cancel instead"),
    ],
)
async def test_a_lie_is_no_verdict_and_the_next_question_is_asked_all_the_same(
    mode: str, words: str, tmp_path: Path
) -> None:
    async with running(mode, tmp_path) as bed:
        for _ in range(2):
            trouble, why = await bed.trouble()
            assert trouble == "wrong"
            assert words in why


async def test_what_a_program_says_of_its_own_failure_is_told(tmp_path: Path) -> None:
    async with running("complains", tmp_path) as bed:
        trouble, why = await bed.trouble()
    assert (trouble, "word list is missing" in why) == ("failed", True)


@pytest.mark.parametrize("mode", ["hang", "other_id"])
async def test_a_program_that_does_not_answer_is_late(
    mode: str, tmp_path: Path
) -> None:
    async with running(mode, tmp_path, timeout=0.3) as bed:
        trouble, _ = await bed.trouble()
    assert trouble == "timeout"


async def test_after_three_failures_in_a_row_a_program_is_left_alone(
    tmp_path: Path,
) -> None:
    async with running("hang", tmp_path, timeout=0.3) as bed:
        found = [(await bed.trouble())[0] for _ in range(5)]
        written = await bed.written()
    assert found == ["timeout"] * 3 + ["paused"] * 2
    assert (written.counts.failed, written.state) == (5, "paused")


@pytest.mark.parametrize(
    ("mode", "words"),
    [("crash", "ended with code 7"), ("flood", "answer nothing"), ("long", "bytes")],
)
async def test_a_program_that_crashes_or_floods_is_started_again(
    mode: str, words: str, tmp_path: Path
) -> None:
    async with running(mode, tmp_path) as bed:
        trouble, why = await bed.trouble()
        assert (trouble, words in why) == ("down", True)
        await bed.trouble()
        assert len(bed.sandbox.programs) == 2


async def test_a_program_that_hangs_for_good_is_started_again(tmp_path: Path) -> None:
    # Else one message that it cannot deal with would hold back all that come after.
    async with running("hang", tmp_path, timeout=0.1) as bed:
        with trio.fail_after(30):
            while len(bed.sandbox.programs) < 2:
                trouble, _ = await bed.trouble()
                assert trouble in {"timeout", "paused", "down"}
                await trio.sleep(0.05)


async def test_a_program_that_reads_nothing_is_given_up(tmp_path: Path) -> None:
    async with running("deaf", tmp_path, timeout=0.5) as bed:
        with pytest.raises(HookError, match=r"not answer|not read"):
            await bed.ask("x" * 500_000)
        trouble, _ = await bed.trouble()
    assert trouble in {"down", "timeout"}


async def test_a_program_gets_none_of_our_variables(tmp_path: Path) -> None:
    async with running("good", tmp_path) as bed:
        await bed.ask()
        (confinement,) = bed.sandbox.confinements
    assert confinement.network == "none"
    assert confinement.writable == (tmp_path / ".hooks" / "h",)


async def test_many_questions_at_once_are_all_answered(tmp_path: Path) -> None:
    async with (
        running("shout", tmp_path, max_calls=4) as bed,
        trio.open_nursery() as nursery,
    ):
        for number in range(300):
            nursery.start_soon(same, bed, f"words {number}")


async def same(bed: Bed, text: str) -> None:
    assert (await bed.ask(text)).text == text.upper()
