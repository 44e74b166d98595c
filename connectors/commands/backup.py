"""`callboard backup` and `restore`: all that a company keeps, copied and put back.

The database is copied also while a server is using it, alone or in one archive.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from actors.schedule.rows import KIND, read
from connectors.commands.common.database import (
    DatabaseChoice,
    database_at,
    database_of_store,
    database_options,
)
from connectors.commands.common.output import (
    FAILED,
    counted,
    is_wanted,
    json_option,
    progress,
    say,
    say_json,
    yes_option,
)
from connectors.config.app import AppConfig
from connectors.files import receipt_key
from connectors.files.archive import (
    ArchiveError,
    ArchivePart,
    Manifest,
    files_in,
    is_archive,
    read_archive,
    write_archive,
)
from connectors.files.blobs import folder_of
from runtime import __version__
from runtime.clock import SystemClock
from runtime.config.loader import Settings
from runtime.errors import CorruptError, StoreRefusedError, StoreUnavailableError
from runtime.store.database import Database, Totals

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
    store.refuse_replacing(archive)
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


@click.command()
@database_options
@click.argument("target")
@click.option("--force", is_flag=True, help="Replace TARGET if it exists.")
@click.option(
    "--all",
    "is_whole",
    is_flag=True,
    help="Everything that the company keeps, in one archive.",
)
@click.option(
    "--keep",
    type=click.IntRange(1, 10_000),
    help="TARGET is a folder; remove all but this many of the newest copies in it.",
)
@json_option
def command(
    choice: DatabaseChoice,
    target: str,
    *,
    force: bool,
    is_whole: bool,
    keep: int | None,
    as_json: bool,
) -> None:
    """Copy the database to the file TARGET, whole as of one moment.

    In a folder (with a / at its end, it is made) the copy is named by the time. It is
    checked, and has its name only when it is complete. It holds what people wrote: keep
    it as safe as the database. --all adds the key of receipts, settings, personas,
    workspace, files and daily logs; files of secrets are left out: keep them elsewhere.
    """
    end = WHOLE_END if is_whole else DATABASE_END
    place, folder = Path(target), None
    if keep is not None or target.endswith("/"):
        if not place.exists():
            place.mkdir(parents=True, mode=0o700)
        if not place.is_dir():
            raise click.BadParameter(f"{target} is no folder", param_hint="TARGET")
    if place.is_dir():
        folder, place = place, named_by_time(place, end)
    if is_whole:
        back_up_whole(choice, place, force=force, as_json=as_json)
    else:
        back_up_database(choice, place, force=force, as_json=as_json)
    if folder is not None and keep is not None:
        for old in superseded(folder, end, keep, place):
            old.unlink(missing_ok=True)
            click.echo(f"{old}: removed", err=True)


def back_up_whole(
    choice: DatabaseChoice, target: Path, *, force: bool, as_json: bool
) -> None:
    """Write all that the company keeps to one archive.

    Raises:
        click.ClickException: it cannot be written, or not read again.
    """
    settings = choice.settings
    if settings is None:
        raise click.UsageError(
            "--all needs the settings: give --config, not --db alone"
        )
    choice.refuse_server("backup --all")
    if target.exists() and not force:
        raise click.UsageError(f"{target} exists; give another name, or --force")
    try:
        made = write_whole(choice, settings, target)
    except ArchiveError as error:
        raise click.ClickException(str(error)) from error
    size = target.stat().st_size
    if as_json:
        say_json({"archive": str(target), "bytes": size, "holds": made})
        return
    say(f"{target}: {size:,} bytes, read again and found whole")
    count = Counter(name.partition("/")[0] for name in made.files)
    say(", ".join(f"{name} ({n:,})" if n > 1 else name for name, n in count.items()))
    for each in made.left_out:
        say(f"left out, because it cannot be read or is no plain file: {each}")


def back_up_database(
    choice: DatabaseChoice, target: Path, *, force: bool, as_json: bool
) -> None:
    """Copy the database alone."""
    size = choice.database.back_up(target, replace=force)
    copy = database_at(target)
    totals = count_rows(copy)
    left = unfinished_in(copy, SystemClock().wall())
    if as_json:
        rows = None if totals is None else msgspec.to_builtins(totals)
        undone = None if left is None else msgspec.to_builtins(left)
        told_rows = {"rows": rows, "unfinished": undone}
        say_json({"copy": str(target), "bytes": size, **told_rows})
    else:
        say(f"{target}: {size:,} bytes, found whole")
        say(in_words(totals))
        for line in told(left):
            say(line)


def count_rows(copy: Database) -> Totals | None:
    """Count the rows of a copy; None: an older release wrote it."""
    try:
        with copy.inspect() as rows:
            return rows.totals()
    except StoreRefusedError:
        return None


def in_words(totals: Totals | None) -> str:
    """Say how many rows a copy has."""
    if totals is None:
        return "An older release wrote it; its rows are not counted."
    return ", ".join(
        (
            counted(totals.messages, "message"),
            counted(totals.deliveries, "delivery"),
            counted(totals.events, "event"),
            counted(sum(totals.records.values()), "record"),
        )
    )


ADVICE = (
    (
        "The next start on this copy does that, for a second time if it was done after"
        " the copy was made."
    ),
    (
        "To leave something out, between restore and that start: callboard queue list,"
        " then queue drop ID; callboard schedule list, then schedule pause ID."
    ),
)


class Unfinished(msgspec.Struct, frozen=True):
    """How much work is open in a copy."""

    messages: int
    """Not answered."""

    deliveries: int
    """Not sent."""

    appointments: int
    """Due."""


def unfinished_in(copy: Database, now: float) -> Unfinished | None:
    """Count the open work in a copy.

    Args:
        now: Unix seconds; what was to happen until then is due.

    Returns:
        None for one that an older release wrote, or another program.

    Raises:
        runtime.errors.StoreError: it cannot be read.
    """
    try:
        with copy.inspect() as rows:
            counts = rows.counts()
            read_rows = [read(row) for row in rows.entries(KIND)]
    except StoreRefusedError:
        return None
    due = [it for it in read_rows if it is not None and it.wakes and it.wakes <= now]
    inbox, outbox = counts.inbox, counts.outbox
    return Unfinished(
        messages=inbox.get("accepted", 0) + inbox.get("running", 0),
        deliveries=outbox.get("pending", 0) + outbox.get("sending", 0),
        appointments=len(due),
    )


def told(found: Unfinished | None) -> Iterator[str]:
    """Say which work is open, and what restoring does; nothing if none is."""
    if found is None:
        return
    parts = [
        f"{number:,} {one if number == 1 else many}"
        for number, one, many in (
            (found.messages, "message not answered", "messages not answered"),
            (found.deliveries, "delivery not sent", "deliveries not sent"),
            (found.appointments, "appointment due", "appointments due"),
        )
        if number
    ]
    if parts:
        yield f"Not done in it: {', '.join(parts)}."
        yield from ADVICE


@click.command()
@database_options
@click.argument("copy", type=click.Path(path_type=Path))
@yes_option
def restore_command(choice: DatabaseChoice, copy: Path, *, yes: bool) -> int:
    """Put COPY in the place of the database; no server may be using it.

    COPY is a database, or an archive of `backup --all`, whose folders are put back,
    too. What was there is kept beside it under another name. COPY is not changed. What
    it had still to answer, to send and to begin, the next start does, perhaps for a
    second time; how much that is, is said first.
    """
    # It need not be there yet: on a new machine nothing is.
    database, path = database_of_store(choice.store), choice.path
    if not copy.is_file():
        what = "is no file" if copy.exists() else "does not exist"
        raise StoreUnavailableError(f"{copy} {what}; give the path of a copy")
    if is_archive(copy):
        return restore_whole(choice, copy, yes=yes)
    database.refuse_replacing(copy)
    try:
        unfinished = unfinished_in(database_at(copy), SystemClock().wall())
    except CorruptError as error:
        text = f"{copy} is damaged, or no database at all"
        raise CorruptError(f"{text}; give the path of another copy") from error
    for line in told(unfinished):
        say(line)
    if path.exists() and not is_wanted(f"Replace {path} by {copy}?", yes=yes):
        return FAILED
    kept = database.restore(copy)
    say(f"{path} is now what {copy} was")
    say(in_words(count_rows(database)))
    if kept is not None:
        say(f"What was there before is {kept}")
    return 0


def restore_whole(choice: DatabaseChoice, archive: Path, *, yes: bool) -> int:
    """Put back all that an archive holds.

    Raises:
        click.ClickException: it is damaged; nothing has been changed.
    """
    settings = choice.settings
    if settings is None:
        raise click.UsageError(
            "an archive of `backup --all` needs the settings, which say where all of it"
            f" belongs: give --config. Its own are in it: tar -xf {archive} settings"
        )

    choice.refuse_server("restore of an archive")

    def is_agreed(manifest: Manifest) -> bool:
        at = datetime.fromtimestamp(manifest.made_at, UTC)
        count, release = len(manifest.files), manifest.release
        say(f"{archive}: whole; {count:,} files, {at:%Y-%m-%d %H:%M} UTC, {release}")
        return is_wanted("Put all of it in the place of what is there?", yes=yes)

    try:
        done = put_back(choice, settings.value, archive, is_agreed)
    except ArchiveError as error:
        raise click.ClickException(str(error)) from error
    if done is None:
        return FAILED
    for place, kept in done:
        say(f"{place} is put back" + (f"; what was there is {kept}" if kept else ""))
    say(in_words(count_rows(database_of_store(choice.store))))
    say("Your settings were left alone; the archive's are in it under settings/")
    return 0
