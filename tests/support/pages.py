"""Small pages in stories: whatever reads rows page by page reads many of them.

A page has a thousand rows, and no story has as many: a loop that ends too early, or
reads a row twice where two pages meet, would never be seen.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL = 2
"""Rows."""

STORIES = "tests/stories/"
READERS = ("actors.", "connectors.", "runtime.sql.")


@pytest.fixture(autouse=True)
def small_pages(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have everybody read two rows at a time in a story."""
    node: pytest.Item = request.node
    if not node.nodeid.startswith(STORIES):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        for name, module in tuple(sys.modules.items()):
            if name.startswith(READERS) and hasattr(module, "PAGE"):
                patch.setattr(module, "PAGE", SMALL)
        yield
