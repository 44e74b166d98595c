"""Proves that files named in docstrings and comments exist where the reader looks."""

from __future__ import annotations

import io
import re
import tokenize
from typing import TYPE_CHECKING

from tests.house.test_house import PACKAGES, all_files, modules, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMED = re.compile(r"`([\w/]*\w\.py)`")

OF_EACH_PLATFORM = {"platform.py", "transport.py", "doctor.py", "markup.py"}
"""Said of the file of that name in any platform's folder."""


def texts(source: str) -> Iterator[str]:
    """Give all docstrings and comments of a module."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT or token.string.startswith(('"""', 'r"""')):
            yield token.string


def test_files_that_are_named_exist() -> None:
    known = {name_of(path) for path in all_files()}
    missing: list[str] = []
    for path in modules(*PACKAGES):
        name = name_of(path)
        folder, floor = name.rpartition("/")[0], name.partition("/")[0]
        for text in texts(path.read_text("utf-8")):
            for found in NAMED.findall(text):
                is_there = (
                    found in known
                    or found in OF_EACH_PLATFORM
                    or f"{folder}/{found}" in known
                    or ("/" in found and f"{floor}/{found}" in known)
                )
                if not is_there:
                    missing.append(f"{name}: {found}")
    assert not missing, f"say the path from the root, or a neighbour's name: {missing}"
