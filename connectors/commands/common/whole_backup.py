"""All that a company keeps on disk: where it is, as one archive, and put back."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from connectors.commands.common.database import DatabaseChoice, database_of_store
from connectors.commands.common.output import progress
from connectors.config.app import AppConfig
from connectors.files import receipt_key
from connectors.files.archive import (
    ArchivePart,
    Manifest,
    files_in,
    read_archive,
    write_archive,
)
from connectors.files.blobs import folder_of
from runtime import __version__
from runtime.clock import SystemClock
from runtime.config.loader import Settings

DATABASE, KEY = "database", "receipts.key"
STAMP = "%Y%m%dT%H%M%SZ"
PREFIX, WHOLE_END, DATABASE_END = "callboard-", ".tar.gz", ".db"


def parts_of(settings: Settings[AppConfig], copy: Path) -> list[ArchivePart]:
    """Say what belongs to a company, but for files of secrets.

    Args:
        settings: the company's.
        copy: of its database.
    """
    app = settings.value
    return [
        ArchivePart(DATABASE, copy),
        ArchivePart(KEY, receipt_key.path_of(Path(app.store.path))),
        *(
            ArchivePart(f"settings/{Path(each).name}", Path(each))
            for each in settings.files
        ),
        *folders_of(app),
    ]


def folders_of(app: AppConfig) -> list[ArchivePart]:
    """Say which folders belong to a company."""
    found = [
        ArchivePart("workspace", Path(app.workspace.path)),
        ArchivePart("files", folder_of(app)),
        ArchivePart("memory", Path(app.memory.folder)),
    ]
    found += [
        ArchivePart(f"personas/{name}", agent.persona)
        for name, agent in app.agents.items()
        if agent.persona is not None
    ]
    if app.notebook.bug_file:
        found.append(ArchivePart("bugs.md", Path(app.notebook.bug_file)))
    return found


def write_whole(
    choice: DatabaseChoice, settings: Settings[AppConfig], target: Path
) -> Manifest:
    """Write the archive of a company, which may be running.

    Raises:
        ArchiveError: what was written is not what was read.
        OSError: the disk does not take it.
        StoreError: the database cannot be copied.
    """
    about = Manifest(
        release=__version__, made_at=SystemClock().wall(), parts={}, files={}
    )
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".backup-") as folder:
        copy = Path(folder) / "copy.db"
        choice.database.back_up(copy)
        parts = parts_of(settings, copy)
        total = 2 * sum(each.size for each in files_in(parts))
        with progress(total, "writing") as advance:
            return write_archive(target, parts, about, advance)


def put_back(
    choice: DatabaseChoice,
    app: AppConfig,
    archive: Path,
    is_agreed: Callable[[Manifest], bool],
) -> list[tuple[Path, Path | None]] | None:
    """Put what an archive holds in the place of what is there; no server may run.

    Args:
        choice: the database.
        app: settings, which say where all of it belongs.
        archive: the archive.
        is_agreed: asked once it is known to be whole.

    Returns:
        What was put in its place, and where what was there is kept, if anything was;
        None: it was not agreed.

    Raises:
        ArchiveError: the archive is damaged; nothing has been changed.
        OSError: the disk does not take it.
        StoreError: the database is in use, or another program's.
    """
    database = choice.path
    database.parent.mkdir(parents=True, exist_ok=True)
    # It need not be there yet: on a new machine nothing is.
    store = database_of_store(choice.store)
    store.refuse_replacing()
    with tempfile.TemporaryDirectory(dir=database.parent, prefix=".restore-") as at:
        into = Path(at)
        with progress(archive.stat().st_size, "reading") as advance:
            manifest = read_archive(archive, advance, into)
        if not is_agreed(manifest):
            return None
        kept = store.restore(into / DATABASE)
        done = [(database, kept)]
        places = [ArchivePart(KEY, receipt_key.path_of(database)), *folders_of(app)]
        done += [
            (part.path, exchanged(into / part.name, part.path))
            for part in places
            if (into / part.name).exists()
        ]
    return done


def exchanged(new: Path, place: Path) -> Path | None:
    """Put a file or folder in a place; gives where what was there is kept."""
    kept: Path | None = None
    if place.exists():
        stamp = datetime.now(UTC).strftime(STAMP)
        kept = place.with_name(f"{place.name}.before-{stamp}")
        place.rename(kept)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(new, place)
    return kept


def named_by_time(folder: Path, end: str) -> Path:
    """Name a backup in a folder by the present moment."""
    moment = datetime.fromtimestamp(SystemClock().wall(), UTC)
    return folder / f"{PREFIX}{moment:{STAMP}}{end}"


def superseded(folder: Path, end: str, keep: int) -> Iterator[Path]:
    """Give the backups in a folder but for the newest; others' files never."""
    known = sorted(folder.glob(f"{PREFIX}[0-9]*T[0-9]*Z{end}"))
    yield from known[: max(0, len(known) - keep)]
