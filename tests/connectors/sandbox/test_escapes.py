"""Proves that confined programs stay inside, by having them try to get out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from connectors.sandbox.process import LaunchingSandbox
from tests.connectors.sandbox.escapes import ESCAPES, PRELUDE, Escape
from tests.connectors.sandbox.stage import PYTHON, Kind, Stage, confining, open_stage

ALLOWED = {"anybody"} if os.getuid() else {"anybody", "root"}
CONTROLLED = [each for each in ESCAPES if each.control in ALLOWED]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with open_stage(tmp_path) as made:
        yield made


@pytest.fixture(params=["bubblewrap", "landlock"])
def sandbox(
    request: pytest.FixtureRequest, stage: Stage, escape: Escape
) -> LaunchingSandbox:
    kind: Kind = request.param
    return confining(kind, stage, escape.needs)


def program(stage: Stage, escape: Escape) -> list[str]:
    lines = escape.code.strip().splitlines()
    body = "\n".join(f"    {line}" for line in lines)
    text = (
        f"{PRELUDE}\ntry:\n{body}\nexcept Exception as e:\n    print('held', repr(e))\n"
        "else:\n    print('escaped')\n"
    )
    return [PYTHON, "-I", "-S", "-c", text, stage.given()]


@pytest.mark.parametrize("escape", ESCAPES, ids=lambda each: each.name)
async def test_nobody_gets_out(
    sandbox: LaunchingSandbox, stage: Stage, escape: Escape
) -> None:
    before = stage.seen()
    finished = await sandbox.run(
        program(stage, escape),
        confinement=stage.confinement(escape.network),
        cwd=stage.work,
        timeout=60,
        max_output=10_000,
    )
    assert stage.seen() == before
    if escape.harms:
        return
    was_killed = finished.returncode == -31  # SIGSYS: the filter ended it
    assert was_killed or finished.stdout.startswith(b"held "), finished


# Of the ways out, not of the sandboxes.
@pytest.mark.deep
@pytest.mark.parametrize("escape", CONTROLLED, ids=lambda each: each.name)
async def test_without_a_sandbox_this_would_work(stage: Stage, escape: Escape) -> None:
    before = stage.seen()
    finished = await trio.run_process(
        program(stage, escape), cwd=stage.work, capture_stdout=True
    )
    if escape.harms:
        assert stage.seen() != before, finished
    else:
        assert finished.stdout == b"escaped\n", finished
