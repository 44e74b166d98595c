"""Proves that the program of `docs/kernel.md` runs, and prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.support import readme

PAGE = readme.ROOT / "docs" / "kernel.md"


def test_the_program_of_the_page_prints_what_the_page_says() -> None:
    text = PAGE.read_text(encoding="utf-8")
    program, printed = re.findall(r"```(?:python|text)\n(.*?)```", text, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={"PYTHONPATH": str(readme.ROOT), "PATH": ""},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
