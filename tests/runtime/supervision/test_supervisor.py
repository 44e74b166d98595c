"""Proves that supervisors start, restart and stop their children as OTP's do."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import msgspec
import pytest
import trio
from hypothesis import HealthCheck, given, settings, strategies as st
from trio.testing import MockClock

from runtime.actor.actor import Actor
from runtime.actor.lifecycle import PATIENCE
from runtime.actor.messages import Terminated
from runtime.actor.ref import ActorRef
from runtime.supervision.child import ChildSpec
from runtime.supervision.restarts import Backoff, Failures, Strategy
from runtime.supervision.supervisor import (
    StartChild,
    Supervisor,
    SupervisorConfig,
    endless,
)
from runtime.system import ActorSystem
from runtime.testing import Probe, Reports, open_test_system, seeded_order, wait_settled
from tests.support.puppet import Puppet, supervise, virtual
from tests.support.supervisor.cases import ENDS, STARTS, STOPS, A, B, C, Case, Kid, kid
from tests.support.supervisor.restart_cases import RESTARTS
from tests.support.supervisor.stage import Crash, CrashError, Stage, sleep_deaf
from tests.support.supervisor.tree_cases import TREES
from tests.support.tiers import examples

CASES = (*STARTS, *STOPS, *ENDS, *RESTARTS, *TREES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_supervisor_does_as_the_row_says(
    case: Case, autojump_clock: MockClock
) -> None:
    del autojump_clock
    async with open_test_system() as system:
        stage = Stage(system, case)
        await stage.play()
        ended, alive, log = stage.why_ended(), stage.alive(), ", ".join(stage.log)
    assert (log, ended) == (case.log, case.ends)
    if case.alive is not None:
        assert " ".join(alive) == case.alive


def test_no_two_rows_have_the_same_name() -> None:
    assert len({case.id for case in CASES}) == len(CASES)


@pytest.mark.parametrize(
    ("first", "waits"),
    [
        (1.0, [1, 2, 4, 8, 16, 32, 60, 60]),
        (0.0, [0, 0, 0, 0]),
        (90.0, [90, 90]),
    ],
)
def test_a_program_that_always_fails_is_started_again_ever_more_slowly(
    first: float, waits: list[float]
) -> None:
    config, failures, now = endless(first), Failures(), 0.0
    for expected in waits:
        wait, failures = config.backoff.delay(failures, now, random01=0.0)
        assert wait == expected
        now += wait


class Watcher(Probe):
    """Watches one actor from its start on."""

    def __init__(self, ref: ActorRef) -> None:
        super().__init__()
        self._ref = ref

    def on_start(self) -> Any:
        self.watch(self._ref)


async def staged(system: ActorSystem, *kids: Kid, steps: tuple[str, ...] = ()) -> Stage:
    stage = Stage(system, Case(id="", kids=kids, log="", steps=steps))
    await stage.play()
    return stage


async def test_a_watcher_hears_of_the_last_end_only(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_test_system() as system:
        stage = await staged(system, A)
        watcher = Watcher(stage.ref("a"))
        system.spawn(watcher)
        for _ in range(2):
            stage.ref("a").tell(Crash())
            await trio.sleep(1)
        assert watcher.received == []
        await stage.ask("stop", "a")
        heard = await watcher.wait_for(Terminated)
        assert (heard.ref, heard.exit.how) == (stage.refs["a"], "shutdown")


async def test_restarts_are_counted_by_kind_and_reason(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    reports = Reports()
    async with open_test_system(reports) as system:
        stage = await staged(system, A, steps=("crash a", "kill a", "wait 9"))
        restarts = system.statistics().restarts
        assert restarts == {("Kind", "CrashError"): 1, ("Kind", "killed"): 1}
        told = [each["reason"] for each in reports.of("actor restarts")]
        assert told == ["CrashError", "killed"]
        (child,) = [each for each in system.actors() if each.name == "./a"]
        assert (child.restarts, child.failed) == (2, 1)
        assert stage.ref("a").is_alive()


async def test_a_failed_start_is_reported_with_its_error(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    reports = Reports()
    async with open_test_system(reports) as system:
        await staged(system, kid("a", "ok fail ok"), steps=("kill a", "wait 1"))
        (failed,) = reports.of("actor failed")
        assert failed["actor"] == "./a"
        assert isinstance(failed["error"], CrashError)


async def test_who_only_tells_a_supervisor_cannot_end_the_children(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    reports = Reports()
    async with open_test_system(reports) as system:
        stage = await staged(system, A)
        stage.refs["."].tell(StartChild(stage.spec(kid("b", "late-fail"))))
        stage.refs["."].tell("nonsense")
        await trio.sleep(2)
        assert stage.log == ["a up"]
        assert stage.ref("a").is_alive()
        assert len(reports.of("child not started")) == 1
        (letter,) = system.dead_letters.last()
        assert (letter.reason, letter.message) == ("not_understood", "nonsense")


async def test_poison_and_what_waits_for_the_dead_are_dead_letters(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_test_system() as system:
        steps = ("poison a", "wait 9", "busy a", "tell a x & shutdown a", "wait 9")
        await staged(system, A, steps=steps)
        letters = [(each.reason, each.message) for each in system.dead_letters.last()]
        assert [reason for reason, _ in letters] == ["poison", "stopped"]
        assert letters[-1][1] == "x"


async def test_children_end_in_order_when_the_system_s_block_is_cancelled(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    log: list[str] = []
    with trio.move_on_after(3):
        async with open_test_system() as system:
            stage = await staged(system, A, kid("b", stop="slow"), C)
            log = stage.log
            await trio.sleep_forever()
    assert log == ["a up", "b up", "c up", "c down 3", "b down 4", "a down 4"]


async def test_a_start_that_is_cancelled_leaves_nobody_behind(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    log: list[str] = []
    with trio.move_on_after(3):
        async with open_test_system() as system:
            case = Case(id="", kids=(A, kid("b", "hang"), C), log="")
            stage = Stage(system, case)
            log = stage.log
            await stage.play()
    assert log == ["a up", "a down 3"]


async def test_a_ref_that_was_stopped_stays_dead_though_its_group_restarts(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_test_system() as system:
        case = Case(
            id="",
            kids=(A, B),
            log="",
            strategy="one_for_all",
            steps=("busy b", "shutdown b & crash a"),
        )
        stage = Stage(system, case)
        await stage.play()
        stopped = stage.refs["b"]
        await trio.sleep(2)
        assert not stopped.is_alive()
        assert stage.ref("b") is not stopped
        assert stage.alive() == ["a", "b"]


class Stubborn(Supervisor):
    """Handles one message for ever, and does not end its children without a row."""

    def on_receive(self, message: object) -> object:
        return sleep_deaf() if message == "deaf" else super().on_receive(message)

    async def end_children(self, *, brutally: bool) -> None:
        await super().end_children(brutally=brutally)
        raise CrashError("to order")


async def test_a_supervisor_left_behind_takes_its_children_along(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    reports = Reports()
    async with open_test_system(reports) as system:
        stage = Stage(system, Case(id="", kids=(), log=""))
        top = system.spawn(Stubborn([stage.spec(A), stage.spec(B)]), name=".")
        top.tell("deaf")
        await trio.sleep(1)
        top.kill()
        await trio.sleep(PATIENCE + 0.1)
        assert (stage.alive(), stage.log) == ([], ["a up", "b up"])
        assert not top.is_alive()
        assert len(reports.of("handler left behind")) == 1
        assert len(reports.of("actor failed")) == 1


async def test_a_name_taken_by_a_stranger_is_refused(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    async with open_test_system() as system:
        system.spawn(Probe(), name="./b")
        stage = Stage(system, Case(id="", kids=(A,), log="", extra=(B,)))
        await stage.play()
        await stage.ask("start", "b")
        assert stage.log == ["a up", "start b MisuseError"]


class Echo(Actor):
    """Starts slowly, now and then; crashes and answers to order."""

    def __init__(self, *, is_slow: bool) -> None:
        super().__init__()
        self._is_slow = is_slow

    def on_start(self) -> Any:
        return self._start_late() if self._is_slow else None

    async def _start_late(self) -> None:
        await trio.sleep(0.1)

    def on_receive(self, message: Any) -> Any:
        if isinstance(message, Crash):
            message.strike()
        return message


class Blow(msgspec.Struct, frozen=True):
    """What hits a child in a storm."""

    victim: int
    crashes: int
    """0: it is killed."""

    pause: float
    """Seconds until the next blow."""


BLOWS = st.builds(
    Blow, st.integers(0, 2), st.integers(0, 2), st.sampled_from([0, 0.05, 0.4])
)


async def survive(strategy: Strategy, blows: list[Blow], slow: list[bool]) -> None:
    """Let a storm go over three children; then everybody must be up, once."""
    pace = cycle(slow)
    config = SupervisorConfig(strategy, 10_000, backoff=Backoff(maximum=0.3))
    specs = [
        ChildSpec(name=name, start=lambda: Echo(is_slow=next(pace))) for name in "abc"
    ]
    async with open_test_system() as system:
        await system.start_root(Supervisor(specs, config), "top")
        refs = [ref for name in "abc" if (ref := system.find(f"top/{name}"))]
        for blow in blows:
            if blow.crashes:
                refs[blow.victim].tell(Crash(blow.crashes))
            else:
                refs[blow.victim].kill()
            await trio.sleep(blow.pause)
        await trio.sleep(60)  # until all that was told has been survived
        await wait_settled(system)
        assert [each.state for each in system.actors()] == ["running"] * 4
        assert [await ref.ask("there?") for ref in refs] == ["there?"] * 3


@pytest.mark.parametrize("strategy", ["one_for_one", "rest_for_one", "one_for_all"])
@given(blows=st.lists(BLOWS, max_size=40), slow=st.lists(st.booleans(), min_size=1))
@settings(
    max_examples=examples(6),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_after_any_storm_everybody_is_up_once(
    strategy: Strategy, order: int, blows: list[Blow], slow: list[bool]
) -> None:
    # Why once more: Hypothesis seeds trio's dice itself, the same for each example.
    with seeded_order(order):
        trio.run(survive, strategy, blows, slow, clock=MockClock(autojump_threshold=0))


class Restless(Puppet):
    """Watches anew in each incarnation; whatever is asked may end one.

    Args:
        ref: whom to watch.
        log: what all incarnations were told.
    """

    fail_on_ask_error = True

    def __init__(self, ref: ActorRef, log: list[Any]) -> None:
        super().__init__(log)
        self._ref = ref

    def on_start(self) -> None:
        self.log.append("start")
        self.watch(self._ref)


async def fail_late(_me: Actor) -> None:
    await trio.sleep(1)
    raise CrashError


@pytest.mark.parametrize("ends_at", [0.5, 5])
async def test_a_watcher_that_was_restarted_is_told_once(
    ends_at: float, autojump_clock: MockClock
) -> None:
    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        watched = system.spawn(Puppet())
        (ref,) = await supervise(system, lambda: Restless(watched, log))
        asked = ref.ask(fail_late)
        await trio.sleep(ends_at)
        await watched.stop()
        with pytest.raises(CrashError):
            await asked
        await trio.sleep(10)
        kinds: list[Any] = [
            word if isinstance(word, str) else type(word) for word in log
        ]
        assert kinds == ["start", "failure", "start", Terminated]
