"""Proves that the pages about the kernel say what is so."""

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


def test_each_promise_is_compared_with_those_of_others() -> None:
    promised = re.findall(
        r"^- (P\d+)\. ",
        (readme.ROOT / "runtime" / "SEMANTICS.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    text = PAGE.with_name("kernel-compared.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (P\d+) \|(.*)\|$", text, re.MULTILINE)
    assert [number for number, _ in rows] == promised
    assert all(len(cells.split(" | ")) == 5 for _, cells in rows)
