"""Reads what stands in a record, and passes over what cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    from runtime.rows import StoredRecord

Body = TypeVar("Body", bound=msgspec.Struct)

Complain = Callable[[str], None]
"""Told of each row that is left out; one sentence for people."""


def read_record(
    row: StoredRecord, shape: type[Body], complain: Complain
) -> Body | None:
    """Read a record's body; one that cannot be read is complained of, and None."""
    try:
        return msgspec.json.decode(row.body, type=shape)
    except ValueError as error:
        complain(
            f"the {row.kind} record {row.id!r} cannot be read and is left out: {error};"
            " see `callboard records check`"
        )
        return None
