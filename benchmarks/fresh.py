"""Rounds in a process of their own, for what memory and earlier rounds would blur.

`python -m benchmarks.fresh MODULE:FUNCTION PLAN` is the other end of
`in_fresh_process`, not meant to be typed.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec

from benchmarks.figure import Figure, Plan
from benchmarks.machine import ROOT

if TYPE_CHECKING:
    from benchmarks.figure import Round


def in_fresh_process(measure: Round, plan: Plan) -> list[Figure]:
    """Measure once in a new process of the same Python.

    Args:
        measure: a function at the top of a module.
        plan: how much it does.

    Raises:
        subprocess.CalledProcessError: it failed; it said why on standard error.
    """
    target = f"{measure.__module__}:{measure.__name__}"
    command = [sys.executable, "-m", "benchmarks.fresh", target]
    command.append(msgspec.json.encode(plan).decode())
    done = subprocess.run(  # noqa: S603  this Python, a function of ours
        command, cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    return msgspec.json.decode(done.stdout, type=list[Figure])


def main(target: str, plan: str) -> None:
    """Measure, and print the figures as JSON."""
    module, _, function = target.partition(":")
    measure: Round = getattr(importlib.import_module(module), function)
    figures = measure(msgspec.json.decode(plan, type=Plan))
    print(msgspec.json.encode(figures).decode())


if __name__ == "__main__":
    main(*sys.argv[1:])
