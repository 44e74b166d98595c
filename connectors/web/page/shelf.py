"""Which views there are, in the order of the navigation; the chat stands before them.

A new view is listed here and nowhere else.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from connectors.web.page.views import View

MODULES: tuple[str, ...] = ()
"""Each has a `VIEW`; imported at the first request, for some need a lot."""


def all_views() -> tuple[View, ...]:
    """Give all views."""
    return tuple(cast("View", importlib.import_module(each).VIEW) for each in MODULES)
