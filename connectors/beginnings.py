"""Says when a start makes a new database: nobody should run an empty company unawares.

A path that is meant for another folder, or a database that was moved away, looks like
any first start otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors import applied, receipt_key
from runtime.logs import EventLog

if TYPE_CHECKING:
    from pathlib import Path

LOG = EventLog("store")


class Beginning:
    """What stands at the database's path before it is opened, which may make it.

    Args:
        path: the database.
    """

    def __init__(self, path: Path) -> None:
        self._path = path = path.absolute()
        self._is_empty = is_empty(path)
        beside = (receipt_key.path_of(path), applied.path_of(path))
        self._beside = [each.name for each in beside if not is_empty(each)]

    def tell(self) -> None:
        """Say that the database is a new one, if it is; it is open by now."""
        if not self._is_empty:
            return
        if self._beside:
            LOG.warning(
                "a new database was made, beside files of one that is gone",
                path=str(self._path),
                beside=", ".join(self._beside),
                hint="if that one was moved away, stop, and put it back here",
            )
        else:
            LOG.warning("a new database was made", path=str(self._path))


def is_empty(path: Path) -> bool:
    """Whether there is no such file, or nothing in it.

    Not if nobody may look: then it cannot be opened either, and that is told.
    """
    try:
        return path.stat().st_size == 0
    except FileNotFoundError:
        return True
    except OSError:
        return False
