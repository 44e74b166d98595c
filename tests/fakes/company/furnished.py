"""Services as a test wants them, whatever of them the settings say."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from actors.services import Furnishing, InForce, Services

SETTINGS = frozenset(each.name for each in fields(Furnishing))


def changed(services: Services, **changes: Any) -> Services:
    """Give services with other handles, or other settings.

    What the settings say stands in a place of its own then.
    """
    settings = {name: changes.pop(name) for name in SETTINGS & changes.keys()}
    now = replace(services.in_force.current, **settings)
    return replace(services, in_force=InForce(now), **changes)
