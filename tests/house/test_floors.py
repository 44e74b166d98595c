"""Proves that the import contracts hold, and that each one can go red."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINT = [
    sys.executable,
    "-c",
    "from importlinter.cli import lint_imports_command as c; c()",
]

VERDICT = re.compile(r"^(.+?) (KEPT|BROKEN)\b", re.MULTILINE)

# Contract, the file that breaks it, and the line that does.
PLANTS = [
    ("Three floors", "runtime/errors.py", "import connectors.app"),
    ("The kernel never touches the network", "runtime/errors.py", "import httpx"),
    ("The domain does no I/O", "actors/errors.py", "import httpx"),
    (
        "Pure rules see neither clock, loop nor dice",
        "actors/rules/__init__.py",
        "import trio",
    ),
    (
        "Operators reach the store through its port",
        "connectors/admin/queue.py",
        "import runtime.sqlite.database",
    ),
    ("asyncio has one door", "connectors/config/app.py", "import asyncio"),
    ("Layers of the kernel", "runtime/stray.py", '"""A file without a layer."""'),
    ("Layers of the domain", "actors/errors.py", "import actors.tree"),
    ("Layers of the edges", "connectors/config/app.py", "import connectors.cli"),
]


def copy_of_the_code(folder: Path) -> Path:
    """Copy what the contracts speak of."""
    for package in ("runtime", "actors", "connectors"):
        shutil.copytree(
            ROOT / package,
            folder / package,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def contracts_of(folder: Path) -> dict[str, str]:
    """Run all contracts and give `KEPT` or `BROKEN` by name, or the error's text."""
    run = subprocess.run(
        [*LINT, "--no-cache", "--no-logo"],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    results = dict(VERDICT.findall(run.stdout))
    assert results, run.stdout + run.stderr
    assert (run.returncode == 0) is ("BROKEN" not in results.values()), run.stdout
    return results


def test_every_contract_is_kept() -> None:
    results = contracts_of(ROOT)
    assert set(results.values()) == {"KEPT"}, results


def test_planted_violations_turn_their_contracts_red(tmp_path: Path) -> None:
    folder = copy_of_the_code(tmp_path)
    for _, file, line in PLANTS:
        with (folder / file).open("a") as code:
            code.write(f"\n{line}\n")
    results = contracts_of(folder)
    kept = [name for name, _, _ in PLANTS if results[name] != "BROKEN"]
    assert not kept
