"""The libraries alone: a process that imports what `callboard serve` stands on.

It opens no database, listens nowhere and has no code of ours. No server on these
libraries can start sooner or be smaller. httpx comes without its command line, as in
Callboard.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec

from benchmarks.figure import Figure

if TYPE_CHECKING:
    from benchmarks.figure import Plan, Round

SHARE = 1.0

PROGRAM = """
import resource, sys
sys.modules["httpx._main"] = None
import apsw, click, httpx, msgspec, prometheus_client, pykka, trio
import starlette.requests, starlette.routing, uvicorn
import uvicorn.protocols.http.httptools_impl
used = resource.getrusage(resource.RUSAGE_SELF)
with open("/proc/self/statm") as file:
    pages = int(file.read().split()[1])
print([used.ru_utime + used.ru_stime, pages * resource.getpagesize()])
"""


def start(_plan: Plan) -> list[Figure]:
    """Import them; the time is the processor's."""
    return [Figure("serve, processor time", imported()[0] * 1000, "ms")]


def idle(_plan: Plan) -> list[Figure]:
    """Weigh the process that has imported them."""
    return [Figure("memory", imported()[1] / 1e6, "MB")]


def imported() -> tuple[float, float]:
    """Give the seconds of processor that this takes, and the bytes that it holds."""
    done = subprocess.run(  # noqa: S603  this Python, the program above
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, check=True
    )
    return msgspec.json.decode(done.stdout, type=tuple[float, float])


ROUNDS: dict[str, Round] = {"start": start, "idle": idle}
