"""What a confined program may do, in words that no kernel knows.

Pure. A `Confinement` is all that a caller says; `runner.py` carries it out with the
strongest means that this machine has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from runtime.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from runtime.telemetry.metrics import Gauge, Metrics


Network = Literal["none", "tcp"] | frozenset[int]
"""`none`; `tcp`, to any port; or TCP to these ports only. Never UDP, and nobody may
listen. Names of hosts are looked up over TCP, so a name server has to answer there,
and its port, 53, to be among the ports."""

MIB = 1024 * 1024

KILLED = -9
"""The exit code of what was killed."""


class SandboxError(KernelError):
    """A program could not be confined as asked for, and so was not started."""


@dataclass(frozen=True, kw_only=True)
class SandboxLimits:
    """How much a confined program may use."""

    memory: int = 2048 * MIB
    """Bytes of address space of each process, more is refused to it; and of memory in
    use by all of them together. 0: no bound, as some virtual machines reserve more
    than anybody has."""

    cpu: float = 120.0
    """Seconds of processor time of each process; then it is killed."""

    processes: int = 128
    """Processes at once, all those that it starts included."""

    file_size: int = 256 * MIB
    """Bytes of the largest file it may write."""

    open_files: int = 1024
    """Descriptors of each process."""


# Source: Node and Bun reserve tens of gigabytes of addresses that they never use, and
# end at once where they may not ("MemoryExhaustion" with 2 GiB).
LONG_RUNNING = SandboxLimits(
    memory=128 * 1024 * MIB,
    cpu=10_000_000.0,
    processes=256,
    file_size=1024 * MIB,
)
"""For programs of the settings that run for long: tool servers, and models of the
command line. Their time is bounded by the clock, not by the processor's."""


@dataclass(frozen=True, kw_only=True)
class Confinement:
    """What one program may see, change and use.

    Paths are absolute; those that do not exist are an error, except hidden ones. What
    programs need anyway (`/usr`, Python, certificates, ...) is readable always, a
    private folder for temporary files writable always. The innermost path that is
    named decides: a hidden file inside a readable folder stays hidden.
    """

    readable: tuple[Path, ...] = ()
    """Files and folders, with all below, that may be read and executed."""

    writable: tuple[Path, ...] = ()
    """Likewise, that may be read, changed and executed."""

    removable: tuple[Path, ...] = ()
    """Likewise, that may be read, executed and removed; nothing is made there, and
    where Landlock is in force nothing written."""

    hidden: tuple[Path, ...] = ()
    """What may not be reached; the database and the settings are hidden always."""

    network: Network = "none"
    limits: SandboxLimits = field(default_factory=SandboxLimits)


@dataclass(frozen=True, kw_only=True)
class Finished:
    """How a confined program ended, and what it said."""

    returncode: int
    """Its exit code; minus the number of the signal that ended it."""

    stdout: bytes
    """With `was_cut`: beginning and end, and a line between that says how much is
    missing."""

    stderr: bytes
    was_cut: bool
    """Whether `stdout` or `stderr` is not whole."""

    timed_out: bool
    flooded: bool = False
    """Whether it was killed because it wrote without end."""

    overran: bool = False
    """Whether it was killed because it had too many processes, or too much memory in
    all of them together."""

    seconds: float


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What protects this machine from confined programs, as tried out on it."""

    kind: Literal["bubblewrap", "landlock", "none"]
    abi: int = 0
    """Landlock's version in this kernel; 0: it has none."""

    features: Mapping[str, bool]
    """By name of a protection (`FEATURES`), whether it is in force."""

    missing: tuple[str, ...] = ()
    """Why something is not in force, and what to do about it; sentences."""


class SandboxFigures:
    """What is in force, as it was tried last.

    Args:
        metrics: where it is shown, from the first try on.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._gauge: Gauge | None = None
        self._shown: set[tuple[str, str]] = set()

    def show(self, standing: Standing) -> None:
        """Show each protection as 1 or 0, by the kind of sandbox and its name."""
        if self._gauge is None:
            self._gauge = self._metrics.gauge(
                "callboard_sandbox_in_force",
                "Whether a protection from programs that agents start is in force,"
                " as tried.",
                ("kind", "feature"),
            )
        for labels in self._shown:  # settings may want another kind by now
            self._gauge.set(0, *labels)
        for name, holds in standing.features.items():
            self._gauge.set(int(holds), standing.kind, name)
            self._shown.add((standing.kind, name))
