"""How long something takes, or is ago, in words; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.rules.voice import english

if TYPE_CHECKING:
    from actors.rules.voice import Translate

# Why one text for one and one for many: that is as much grammar as a placeholder
# takes; languages with more forms put the number last.
UNITS = (
    (86_400.0, "{count} day", "{count} days"),
    (3_600.0, "{count} hour", "{count} hours"),
    (60.0, "{count} minute", "{count} minutes"),
    (1.0, "{count} second", "{count} seconds"),
)


def spoken(seconds: float, say: Translate = english) -> str:
    """Say roughly how long something is: `40 seconds`, `2 minutes`, `3 days`.

    Args:
        seconds: how long; below one counts as one.
        say: in which language.
    """
    for length, one, many in UNITS:
        count = round(seconds / length)
        if seconds >= length or length == 1.0:
            count = max(1, count)
            return say(one if count == 1 else many).format(count=count)
    raise AssertionError("unreachable: a second is the last unit")


def lasting(seconds: float) -> str:
    """Say roughly how long something takes: `40 seconds`, `2 minutes`."""
    for unit, length in (("hour", 3600.0), ("minute", 60.0), ("second", 1.0)):
        count = round(seconds / length)
        if seconds >= length or unit == "second":
            count = max(1, count)
            return f"{count} {unit}{'' if count == 1 else 's'}"
    raise AssertionError("unreachable: a second is the last unit")
