"""The operators' views of the page, in the order of the navigation.

A new view is listed here and nowhere else. `base.py` says how to write one, and reads
for views in threads; `connectors/web/page/site.py` serves them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from connectors.web.page.views.base import View

__all__ = ["all_views"]

HERE = "connectors.web.page.views"

MODULES: tuple[str, ...] = (
    f"{HERE}.overview",
    f"{HERE}.queue",
    f"{HERE}.conversations",
    f"{HERE}.people",
    f"{HERE}.actors",
    f"{HERE}.schedule",
    f"{HERE}.usage",
    f"{HERE}.audit",
    f"{HERE}.settings",
)
"""Each has a `VIEW`; imported at the first request, as some import a lot."""


def all_views() -> tuple[View, ...]:
    """Give all views."""
    return tuple(cast("View", importlib.import_module(each).VIEW) for each in MODULES)
