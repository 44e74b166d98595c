"""Proves that Prometheus' own checker accepts what we show it."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from trio.testing import MockClock

from actors.metrics import LineMetrics
from runtime.telemetry.metrics import Metrics
from runtime.testing import wait_settled
from tests.support.puppet import Puppet, crash, supervise, virtual


@pytest.mark.live
async def test_promtool_finds_nothing_to_say(autojump_clock: MockClock) -> None:
    promtool = shutil.which("promtool")
    assert promtool is not None, "apt-get install prometheus"
    metrics = Metrics()
    line = LineMetrics(metrics)
    line.messages.add(1, "terminal", "replied")
    line.commit(0.01, 2, 4096)
    async with virtual(autojump_clock) as system:
        metrics.watch(system)
        (ref,) = await supervise(system, Puppet)
        ref.tell(crash)
        await wait_settled(system)
        text = metrics.render()
    checked = subprocess.run(  # noqa: ASYNC221  a moment, in a test
        [promtool, "check", "metrics"], input=text, capture_output=True, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
