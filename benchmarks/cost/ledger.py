"""`python -m benchmarks cost`: what one message costs, counted to the last call.

Every figure is the same on each machine and in each run, so that a test can compare it
with the bounds in `benchmarks/cost.json` without any tolerance; only the calls of a
start may be a hundredth more. `--save` lowers the bounds to what was counted. A bound
is raised by `--save --because "…"` only; the reason is kept beside it.

Calls in libraries depend on their release and Python's: they are compared only where
these are the ones of the file.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

import msgspec

from benchmarks.cost.counting import ROOT, Counts, place, whose
from benchmarks.cost.scenes import SCENES, count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Stages = dict[str, Counts]

FILE = ROOT / "benchmarks" / "cost.json"
LIBRARIES = (
    *("apsw", "httptools", "httpx", "msgspec", "prometheus-client", "pykka"),
    *("starlette", "trio", "uvicorn"),
)
START = "start"
"""The scene that is a program of its own: nothing may be loaded before it begins."""

NAMES = (START, *SCENES)
SLACK = 1.01
"""How many times its bound the calls of a start may be: threads say when they are done,
and by one time in a thousand it is a few calls more or fewer. Modules are exact."""

PATIENCE = 240.0
"""Seconds after which a scene counts as stuck, also on a busy machine."""

ADVICE = (
    "If the cost is worth it, say why:"
    ' python -m benchmarks cost --save --because "the reason, in a sentence"'
)
TOTAL = "in all"


class Raised(msgspec.Struct, frozen=True):
    """Why a bound was raised."""

    what: str
    because: str


class Bounds(msgspec.Struct, frozen=True):
    """What `cost.json` holds."""

    python: str
    """The release of Python by which calls in libraries were counted."""

    libraries: dict[str, str]
    """Releases by name."""

    scenes: dict[str, dict[str, Counts]]
    """By scene and stage: the most that may be counted."""

    raised: tuple[Raised, ...] = ()


def here() -> tuple[str, dict[str, str]]:
    """Give the releases of Python and of the libraries that are installed."""
    return platform.python_version(), {name: version(name) for name in LIBRARIES}


def load() -> Bounds:
    """Read the bounds.

    Raises:
        OSError: there are none.
        msgspec.DecodeError: the file is no such file.
    """
    return msgspec.json.decode(FILE.read_bytes(), type=Bounds)


def measure(names: Sequence[str]) -> dict[str, Stages]:
    """Count scenes, each in a fresh process.

    What one leaves in the program's caches would be missing from the cost of the next,
    and sets have the same order in each run only where their hashes are fixed.

    Raises:
        subprocess.CalledProcessError: it failed; it said why on standard error.
        subprocess.TimeoutExpired: it never came to its end.
    """
    found: dict[str, Stages] = {}
    for name in names or NAMES:
        program = ["start"] if name == START else ["ledger", name]
        done = subprocess.run(  # noqa: S603  this Python, this module
            [sys.executable, "-m", f"benchmarks.cost.{program[0]}", *program[1:]],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": "0", "TZ": "UTC"},
            stdout=subprocess.PIPE,
            timeout=PATIENCE,
            check=True,
        )
        found[name] = msgspec.json.decode(done.stdout, type=dict[str, Counts])
    return found


def grown(bounds: Bounds, counted: dict[str, Stages]) -> Iterator[str]:
    """Say of each count that is above its bound what it was, and is."""
    python, libraries = here()
    is_same = python == bounds.python and libraries == bounds.libraries
    for scene, stages in counted.items():
        for stage, counts in stages.items():
            most = bounds.scenes.get(scene, {}).get(stage, Counts())
            for field in Counts.__struct_fields__:
                before, now = getattr(most, field), getattr(counts, field)
                slack = SLACK if scene == START and field == "calls" else 1
                if now > before * slack and (
                    is_same or not field.startswith("library")
                ):
                    yield f"{scene}, {stage}: {field} {before} → {now}"


def saved(before: Bounds | None, counted: dict[str, Stages], because: str) -> Bounds:
    """Give the bounds with what was counted in place of what was higher.

    Raises:
        ValueError: a bound would have to be raised, and there is no reason.
    """
    raised = () if before is None else tuple(grown(before, counted))
    if raised and not because:
        raise ValueError("\n".join((*raised, ADVICE)))
    python, libraries = here()
    told = () if before is None else before.raised
    known = {} if before is None else before.scenes.get(START, {})
    for stage, counts in counted.get(START, {}).items():
        # Or else a bound would creep up by its slack each time.
        if stage in known and counts.calls <= known[stage].calls * SLACK:
            counts.calls = min(counts.calls, known[stage].calls)
    return Bounds(
        python,
        libraries,
        (before.scenes if before is not None else {}) | counted,
        (*told, *(Raised(what, because) for what in raised)),
    )


def total(stages: Stages) -> Counts:
    """Add up the stages of a scene."""
    fields = Counts.__struct_fields__
    return Counts(*(sum(getattr(x, f) for x in stages.values()) for f in fields))


def table(counted: dict[str, Stages]) -> str:
    """Write what was counted as a table in Markdown."""
    fields = Counts.__struct_fields__
    heads = ("scene", "stage", *(field.replace("_", " ") for field in fields))
    rows = [heads, ("---", "---", *("---:" for _ in fields))]
    for scene, stages in counted.items():
        for stage, counts in (*stages.items(), (TOTAL, total(stages))):
            numbers = (f"{getattr(counts, field):,}" for field in fields)
            rows.append((scene, stage, *numbers))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def functions(name: str) -> str:
    """List the functions of a scene, those that began most often first."""
    ledger = count(name)
    lines: list[str] = []
    for stage, began in ledger.functions.items():
        ours = [(n, place(code)) for code, n in began.items() if whose(code) == "ours"]
        lines += [f"{stage}: {n:5} {where}" for n, where in sorted(ours, reverse=True)]
    return "\n".join(lines)


def main(words: Sequence[str]) -> None:
    """Count, compare and print; see above."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks cost", description=__doc__
    )
    add = parser.add_argument
    add("scenes", nargs="*", help=f"which; all without one: {', '.join(NAMES)}")
    add("--save", action="store_true", help="lower the bounds to what was counted")
    add("--because", default="", help="why bounds may be raised")
    add("--functions", action="store_true", help="list the functions of these scenes")
    given = parser.parse_args(words)
    unknown = [name for name in given.scenes if name not in NAMES]
    if unknown:
        parser.error(f"no scene {unknown[0]!r}; known: {', '.join(NAMES)}")
    if given.functions:
        for name in given.scenes or SCENES:
            print(functions(name))
        return
    counted = measure(given.scenes)
    print(table(counted))
    before = load() if FILE.exists() else None
    if given.save:
        try:
            bounds = saved(before, counted, given.because)
        except ValueError as error:
            sys.exit(str(error))
        encoded = msgspec.json.format(msgspec.json.encode(bounds), indent=1)
        FILE.write_bytes(encoded + b"\n")
    elif before is not None and (more := list(grown(before, counted))):
        sys.exit("\n".join((*more, ADVICE)))


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(count(sys.argv[1]).stages))
