"""Which views there are, in the order of the navigation; the chat stands before them.

A new view is listed here and nowhere else.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from connectors.web.page.views import View

HERE = "connectors.web.page"

MODULES: tuple[str, ...] = (
    f"{HERE}.view_overview",
    f"{HERE}.view_actors",
    f"{HERE}.view_conversations",
    f"{HERE}.view_queue",
    f"{HERE}.view_schedule",
    f"{HERE}.view_usage",
    f"{HERE}.view_audit",
    f"{HERE}.view_settings",
)
"""Each has a `VIEW`; imported at the first request, for some need a lot."""


def all_views() -> tuple[View, ...]:
    """Give all views."""
    return tuple(cast("View", importlib.import_module(each).VIEW) for each in MODULES)
