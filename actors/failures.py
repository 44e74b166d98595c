"""What a failed turn is to its session, by what its rules say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.protocol import Failed

if TYPE_CHECKING:
    from actors.rules.turn import Fail

_FAILURES: dict[str, Failed] = {
    "busy": Failed("", "model", "unavailable", may_retry=True),
    "refused": Failed("", "model", "refused"),
    "untrusted": Failed("", "untrusted", "refused"),
    "budget": Failed("", "budget", "budget"),
    "allowance": Failed("", "allowance", "budget"),
    "vision": Failed("", "vision", "refused"),
    "context": Failed("", "context", "refused"),
}


def as_failed(fail: Fail) -> Failed:
    """Give the report of a turn that ends without an answer."""
    failed = _FAILURES[fail.kind]
    return msgspec.structs.replace(failed, text=fail.text, not_before=fail.not_before)
