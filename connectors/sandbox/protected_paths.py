"""What no program that an agent starts may reach, by the settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from connectors.sandbox.territory import Territory, refuse_around

if TYPE_CHECKING:
    from collections.abc import Iterable

    from connectors.config.app import AppConfig

SQLITE = ("", "-wal", "-shm", "-journal")
BESIDE = (*SQLITE, ".receipts.key", ".settings.json", ".socket", ".history")
"""What SQLite adds to the database's name, and what else stands beside it: the key of
receipts, the settings in use, the socket of terminals, what was typed there."""


def territory(config: AppConfig, files: Iterable[Path]) -> Territory:
    """Keep the database with its folder, and the files of settings and secrets.

    Args:
        config: says where the database and the workspaces are.
        files: of settings and secrets.

    Raises:
        SandboxError: the folder that agents work in holds what must be kept.
    """
    database = Path(config.store.path).absolute()
    names = [database.with_name(database.name + end) for end in BESIDE]
    # A folder that is everybody's cannot be kept from programs; its files can.
    folder = [] if is_common(database.parent) else [database.parent]
    kept = (*folder, *names, *(path.absolute() for path in files))
    refuse_around(workspace_of(config), [each.resolve() for each in kept])
    return Territory(
        kept=kept,
        open_inside=(workspace_of(config),),
        readable=tuple(path.absolute() for path in config.sandbox.readable),
    )


def is_common(folder: Path) -> bool:
    """Whether a folder is too high up to belong to one program."""
    return len(folder.resolve().parts) <= 2


def workspace_of(config: AppConfig) -> Path:
    """Give the folder in which each agent has one of its own."""
    return Path(config.workspace.path).absolute()
