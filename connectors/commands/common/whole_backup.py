"""All that a company keeps on disk: where it is, as one archive, and put back."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from connectors.commands.common.database import DatabaseChoice, database_of_store
from connectors.commands.common.output import progress
from connectors.config.app import AppConfig
from connectors.files import receipt_key
from connectors.files.archive import (
    ArchiveError,
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
NAMED = re.compile(r"callboard-\d{8}T\d{6}Z", re.ASCII)


def parts_of(settings: Settings[AppConfig], copy: Path) -> list[ArchivePart]:
    """Say what belongs to a company, but for files of secrets."""
    app = settings.value
    return [
        ArchivePart(DATABASE, copy),
        ArchivePart(KEY, receipt_key.path_of(Path(app.store.path))),
        *settings_parts([Path(each) for each in settings.files]),
        *folders_of(app),
    ]


def settings_parts(files: list[Path]) -> Iterator[ArchivePart]:
    """Name settings files as they lie to each other, the first one at the top.

    One that is a link, as in a container, is what it leads to.
    """
    paths = [Path(os.path.abspath(each)) for each in files]  # noqa: PTH100  links stay
    taken: set[str] = set()
    for path in paths:
        top = paths[0].parent
        below = path.relative_to(top) if path.is_relative_to(top) else Path(path.name)
        name, number = f"settings/{below.as_posix()}", 1
        while name in taken:
            number += 1
            name = f"settings/{number}/{below.as_posix()}"
        taken.add(name)
        yield ArchivePart(name, path.resolve())


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
        ArchiveError: what was written is not what was read, or the archive would lie
            in what it holds.
        OSError: the disk does not take it.
        StoreError: the database cannot be copied.
    """
    for part in folders_of(settings.value):
        if target.resolve().is_relative_to(part.path.resolve()):
            raise ArchiveError(
                f"{target} lies in {part.path}, which it is a copy of: each copy would"
                " hold all earlier ones; name a folder elsewhere"
            )
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
        ArchiveError: the archive is damaged, or a place cannot be given to what is in
            it; the text says what has been changed, if anything.
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
        places = [ArchivePart(KEY, receipt_key.path_of(database)), *folders_of(app)]
        refuse_mounted([x.path for x in places if (into / x.name).exists()])
        kept = store.restore(into / DATABASE)
        for each in database.parent.glob(f"{database.name}*"):  # the lock, too
            give_to_owner(each, kept)
        done = [(database, kept)]
        # Agents may share a persona: it is in the archive for each, and put back once.
        once = {part.path: into / part.name for part in reversed(places)}
        for place, new in reversed(once.items()):
            above = [each for each, _ in done if place.is_relative_to(each)]
            if not new.exists() or (above and place.exists()):
                continue  # none of it was kept, or a folder had it in it
            try:
                done.append((place, exchanged(new, place)))
            except OSError as error:
                before = ", ".join(str(each) for each, _ in done)
                raise ArchiveError(
                    f"{place} could not be put back: {error}. Put back before:"
                    f" {before}. What was there is kept beside each, with `.before-` in"
                    " its name."
                    " Mend what is wrong, and restore again"
                ) from error
    return done


def refuse_mounted(places: Iterable[Path]) -> None:
    """Refuse places that cannot be renamed, and so not kept.

    Raises:
        ArchiveError: there is one.
    """
    for place in places:
        if os.path.ismount(place):
            raise ArchiveError(
                f"{place} is a mount point, which nothing else can take the place of;"
                " nothing was changed. Unmount it, or name a folder inside it in the"
                " settings"
            )


def exchanged(new: Path, place: Path) -> Path | None:
    """Put a file or folder in a place; gives where what was there is kept.

    Raises:
        OSError: it cannot be; what was there is there again.
    """
    kept: Path | None = None
    if place.exists():
        kept = free_beside(place)
        place.rename(kept)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(new, place)
        give_to_owner(place, kept)
        if kept is not None:
            open_as_before(place, kept)
    except OSError:
        if kept is not None:
            shutil.rmtree(place, ignore_errors=True)  # half of it, from another disk
            kept.rename(place)
        raise
    return kept


def give_to_owner(place: Path, before: Path | None) -> None:
    """Give what root has put back to whoever had what was there, or has the folder.

    Else the company, which is another user's, could not read it.
    """
    if os.geteuid() != 0:
        return
    like = (before or place.parent).stat()
    for each in (place, *place.rglob("*")):
        os.chown(each, like.st_uid, like.st_gid, follow_symlinks=False)


def open_as_before(place: Path, before: Path) -> None:
    """Let those read what was put back who could read what was there.

    An archive is unpacked for its owner alone; a service with a user of its own reads
    the personas that root keeps.

    Args:
        place: what was put back.
        before: what was there. Where it lacks a file, its own folder's mode counts.
    """
    for each in (place, *place.rglob("*")):
        twin = before / each.relative_to(place)
        mode = stat.S_IMODE((twin if twin.exists() else before).stat().st_mode)
        each.chmod(mode if each.is_dir() or twin.is_file() else mode & 0o666)


def free_beside(place: Path) -> Path:
    """Name what was in a place by the present moment, so that nothing is replaced."""
    first = f"{place.name}.before-{datetime.now(UTC).strftime(STAMP)}"
    found, number = place.with_name(first), 1
    while os.path.lexists(found):
        number += 1
        found = place.with_name(f"{first}-{number}")
    return found


def named_by_time(folder: Path, end: str) -> Path:
    """Name a backup in a folder by the present moment."""
    moment = datetime.fromtimestamp(SystemClock().wall(), UTC)
    return folder / f"{PREFIX}{moment:{STAMP}}{end}"


def superseded(folder: Path, end: str, keep: int, newest: Path) -> Iterator[Path]:
    """Give the backups in a folder but for the newest; others' files never.

    Args:
        folder: where they are.
        end: of their names.
        keep: how many stay.
        newest: the one just made, whatever the clock said when others were named.
    """
    known = [
        each
        for each in sorted(folder.iterdir())
        if NAMED.fullmatch(each.name.removesuffix(end))
        and each.name.endswith(end)
        and each.is_file()
        and each.name != newest.name
    ]
    yield from known[: max(0, len(known) + 1 - keep)]
