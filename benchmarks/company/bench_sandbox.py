"""Sandbox: what it costs to run a program confined, from asking to its end.

The program is `true`, so that nothing is measured but the start and the end. `plain`
is trio's own way to run a program; then come our launcher without protection, with
Landlock and the filter, and with bubblewrap around it. A kind that does not work on
this machine is left out.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.stopwatch import now_ns, spans
from connectors.config.tools import SandboxConfig
from connectors.sandbox.plan import Confinement, SandboxError, Territory
from connectors.sandbox.runner import open_sandbox

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Literal

    from connectors.sandbox.runner import Sandbox

KINDS: tuple[Literal["none", "landlock", "bubblewrap"], ...] = (
    "none",
    "landlock",
    "bubblewrap",
)
WARM = 2


def measure(plan: Plan) -> list[Figure]:
    """Run `size` programs of each kind, one after the other."""
    return trio.run(run_all, plan.size)


async def run_all(size: int) -> list[Figure]:
    """Run them plain, and in every sandbox that works here."""
    figures = await timed(size, run_plain, "plain")
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            try:
                config = SandboxConfig(mode=kind)
                sandbox = await open_sandbox(config, Territory())
            except SandboxError:
                continue
            run = confined(sandbox, Path(folder))
            figures += await timed(size, run, kind)
    return figures


async def run_plain() -> None:
    """Run a program as trio does."""
    finished = await trio.run_process(["true"], capture_stdout=True)
    assert finished.returncode == 0


def confined(sandbox: Sandbox, folder: Path) -> Callable[[], Awaitable[None]]:
    """Say how a program is run in a sandbox."""

    async def run() -> None:
        finished = await sandbox.run(
            ["true"],
            confinement=Confinement(writable=(folder,)),
            cwd=folder,
            timeout=60,
            max_output=1000,
        )
        assert finished.returncode == 0

    return run


async def timed(
    size: int, run: Callable[[], Awaitable[None]], name: str
) -> list[Figure]:
    """Time each of so many runs."""
    taken: list[int] = []
    for number in range(WARM + size):
        begin = now_ns()
        await run()
        if number >= WARM:
            taken.append(now_ns() - begin)
    return spans(taken, f", {name}")


BENCHMARK = Benchmark(
    name="sandbox",
    about="start and end a confined program",
    full=Plan(100, 1),
    quick=Plan(2, 1),
    measure=measure,
    warms_up=False,
)
