"""What no program that an agent starts may reach, by the settings (F324)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from connectors.sandbox.territory import Territory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from connectors.config import AppConfig

BESIDE = ("", "-wal", "-shm", "-journal")
"""What SQLite adds to the database's name."""


def territory(config: AppConfig, files: Iterable[Path]) -> Territory:
    """Keep the database with its folder, and the files of settings and secrets.

    Args:
        config: says where the database and the workspaces are.
        files: of settings and secrets.
    """
    database = Path(config.store.path).absolute()
    names = [database.with_name(database.name + end) for end in BESIDE]
    # A folder that is everybody's cannot be kept from programs; its files can.
    folder = [] if is_common(database.parent) else [database.parent]
    return Territory(
        kept=(*folder, *names, *(path.absolute() for path in files)),
        open_inside=(Path(config.workspace.path).absolute(),),
        readable=tuple(path.absolute() for path in config.sandbox.readable),
    )


def is_common(folder: Path) -> bool:
    """Whether a folder is too high up to belong to one program."""
    return len(folder.resolve().parts) <= 2
