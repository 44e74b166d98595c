"""Proves that a class name stands once on a floor, so that it can be searched for."""

from __future__ import annotations

import re
from collections import Counter

from tests.house.test_house import PACKAGES, modules

CLASS = re.compile(r"^class (\w+)", re.MULTILINE)

SHARED_WORDS = frozenset({
    # Every platform has these parts.
    "Account",
    "Config",
    "Transport",
    # Every model vendor has these shapes on its wire, under these names.
    "Assembly",
    "Body",
    "Chunk",
    "Choice",
    "Content",
    "Delta",
    "ErrorBody",
    "ErrorEnvelope",
    "Message",
    "Part",
    "SentCall",
    "SentFunction",
    "SentMessage",
    "SentTool",
    "StreamOptions",
})  # fmt: skip
"""Words that each platform or vendor may have for itself."""


def test_no_class_name_is_used_again_on_its_floor() -> None:
    found = Counter(
        (floor, name)
        for floor in PACKAGES
        for path in modules(floor)
        for name in CLASS.findall(path.read_text("utf-8"))
        if name not in SHARED_WORDS
    )
    repeated = {f"{floor}: {name}" for (floor, name), n in found.items() if n > 1}
    assert not repeated, f"find another name; these stand more than once: {repeated}"
