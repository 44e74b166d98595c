"""The independent server of models, aimock: what it answers is listed as fixtures."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tests.processes.running import ROOT

SERVER = ROOT / ".live/node_modules/.bin/llmock"


@contextmanager
def serving(
    fixtures: Sequence[object], folder: Path, key: str, *words: str
) -> Generator[str]:
    """Run the server until the block ends; gives its address.

    Args:
        folder: where the fixtures are written.
        key: which it takes.
        words: further words of its command line.
    """
    node = shutil.which("node")
    assert node is not None, "install Node.js 20 or newer"
    assert SERVER.exists(), "run tests/live/setup.sh"
    path = folder / "fixtures.json"
    path.write_bytes(msgspec.json.encode({"fixtures": fixtures}))
    with subprocess.Popen(
        [node, str(SERVER), "--port", "0", "--fixtures", str(path), *words],
        env={"AIMOCK_API_KEYS": key},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        yield next(line.split()[-1] for line in lines if "listening on" in line)
        process.terminate()
