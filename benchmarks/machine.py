"""Where and with what a run measures: the part of a record that is not a number."""

from __future__ import annotations

import gc
import os
import platform
import resource
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.record import Machine, Setting
from runtime import __version__

ROOT = Path(__file__).parent.parent
PACKAGES = (
    *("pykka", "trio", "msgspec", "apsw", "httpx", "uvicorn"),
    *("autogen-core", "xoscar"),
    *("openai", "anthropic", "google-genai", "ollama"),
)


def setting(seed: int) -> Setting:
    """Describe this run."""
    thresholds = "/".join(str(number) for number in gc.get_threshold())
    return Setting(
        seed=seed,
        machine=Machine(
            cpu=cpu_model(),
            cores=os.cpu_count() or 1,
            system=f"{platform.system()} {platform.release()}",
            load=round(os.getloadavg()[0], 1),
        ),
        python=platform.python_version(),
        versions=versions(),
        commit=commit(),
        gc=f"on, thresholds {thresholds}, collected before each round",
    )


def cpu_model() -> str:
    """Name the processor, as precisely as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (text.partition(":")[2].strip() for text in lines if "model name" in text)
    return next(names, platform.machine())


def versions() -> dict[str, str]:
    """Give the versions of what is measured and of what it stands on."""
    found = {"callboard": __version__}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """Name the commit that is measured; `none` outside of a repository."""
    git = shutil.which("git")
    if git is None:
        return "none"
    asked = subprocess.run(  # noqa: S603  fixed arguments
        [git, "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip() or "none"


def resident(process: int | str = "self") -> int:
    """Bytes of memory a process holds now; where only the peak is known, of this one.

    Args:
        process: its id, or `self`.
    """
    statm = Path(f"/proc/{process}/statm")
    if statm.exists():
        pages = int(statm.read_text(encoding="ascii").split()[1])
        return pages * resource.getpagesize()
    return peak_resident()


def processor_seconds(process: int) -> float:
    """Seconds of processor that a process has used so far, all its threads together.

    To the hundredth of a second.

    Raises:
        FileNotFoundError: there is no such process, or this is not Linux.
    """
    stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    # Its second field, the program's name in brackets, may hold blanks.
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_resident() -> int:
    """Most bytes of memory this process has held."""
    # Why not only getrusage: on Linux its peak survives `exec`, so that a child
    # begins with the peak of its parent.
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text(encoding="utf-8").splitlines()
        return next(int(x.split()[1]) * 1024 for x in lines if x.startswith("VmHWM"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
