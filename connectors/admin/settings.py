"""The settings in effect, written for people: each with where it comes from.

Never shows a secret: what leaves here may be pasted into a bug report. A running
company writes what it goes by into a file beside its database, for `config diff`, each
node into one of its own. It holds a lock on the file, so that one left by a process
that was killed is not taken for a living one's. Of each secret that file has only a
mark by which to tell that it has changed, made with the key beside the database.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self, TypeGuard

import msgspec

from connectors.config.app import AppConfig
from connectors.files import receipt_key
from runtime.config.loader import Settings
from runtime.config.messages import dotted, toml
from runtime.secret import OpenText, Secret
from runtime.telemetry.logs import EventLog

Way = tuple[str | int, ...]
Table = dict[str, object]
Origins = Mapping[Way, object]
"""By setting, what says where it was written."""

DEFAULT = "default"


def effective(app: AppConfig) -> Table:
    """Turn settings into plain values: paths as texts, secrets masked."""
    plain: object = msgspec.to_builtins(app, enc_hook=plain_value)
    if not is_table(plain):
        raise TypeError("settings are a table")
    return plain


def plain_value(value: object) -> str:
    """Write what JSON has no word for.

    Raises:
        TypeError: a setting has a type that nobody has thought of here.
    """
    if isinstance(value, (Secret, OpenText, Path)):
        return str(value)
    raise TypeError(f"cannot show a {type(value).__name__}")


def is_table(value: object) -> TypeGuard[Table]:
    """Tell whether a value is a table."""
    return isinstance(value, dict)


def is_tables(value: object) -> TypeGuard[list[Table]]:
    """Tell whether a value is a list of tables, and not an empty one."""
    if not isinstance(value, (list, tuple)):
        return False
    items: list[object] = list(value)  # pyright: ignore[reportUnknownArgumentType]
    return bool(items) and all(isinstance(item, dict) for item in items)


def leaves(value: object, way: Way = ()) -> Iterator[tuple[Way, object]]:
    """Give every setting that is no table, in the order of the schema."""
    if is_table(value):
        # In TOML what follows a table's header is that table's.
        own_first = sorted(
            value.items(), key=lambda item: is_table(item[1]) or is_tables(item[1])
        )
        for key, child in own_first:
            yield from leaves(child, (*way, key))
    elif is_tables(value):
        for index, child in enumerate(value):
            yield from leaves(child, (*way, index))
    else:
        yield way, value


def written(app: AppConfig) -> dict[str, str]:
    """Write every setting as one text by its dotted name; what is unset is left out."""
    return {
        dotted(way): value if isinstance(value, str) else toml(value)
        for way, value in leaves(effective(app))
        if value is not None
    }


class Setting(NamedTuple):
    """One setting that is no table."""

    way: Way
    text: str | None
    """As TOML has it, secrets masked; None: it is not set."""

    origin: str
    """File and line where it was written, or that it is the default."""


class ProposedSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A change of one setting, checked and not yet written."""

    name: str
    words: str
    """What the setting does, in English; empty: its name says all."""

    type: str
    """What may be written: `number above 0`."""

    text: str
    """What it is to be, as it was given."""

    options: tuple[str, ...] = ()
    """What it may be, as TOML has it, if that is a short list."""

    file: str = ""
    """Where it would be written."""

    lines: tuple[str, ...] = ()
    """What would change in the file; see `EditedSettings.difference`."""

    effects: tuple[str, ...] = ()
    """What would change in force, with all that inherits it: `- name = value`."""

    problem: str = ""
    """Why it cannot be written; empty: it can."""

    mark: str = ""
    """Tells the text of the file from any other, so that nothing is written over what
    somebody else has changed meanwhile."""


def setting_rows(app: AppConfig, origins: Origins) -> list[Setting]:
    """Give every setting with where it comes from, in the order of a TOML file."""
    # Keys of the top come first in TOML; after a table's header they would be its.
    found = sorted(leaves(effective(app)), key=lambda leaf: len(leaf[0]) > 1)
    return [
        Setting(
            way,
            None if value is None else toml(value),
            str(origins.get(way, DEFAULT)),
        )
        for way, value in found
    ]


def origin_texts(settings: Settings[AppConfig]) -> dict[str, str]:
    """Say of every setting where it was written, or that it is the default."""
    rows = setting_rows(settings.value, settings.origins)
    return {dotted(each.way): each.origin for each in rows}


def toml_lines(
    settings: Settings[AppConfig],
    inside: Sequence[str] = (),
    *,
    only_changed: bool = False,
) -> Iterator[str]:
    """Write settings as TOML, each with a comment that names its origin.

    Args:
        inside: only those of this table, by its names; nothing: all.
        only_changed: leave out those that nobody has set.
    """
    table: Way = ()
    for way, text, origin in setting_rows(settings.value, settings.origins):
        if way[: len(inside)] != tuple(inside):
            continue
        if only_changed and origin == DEFAULT:
            continue
        if way[:-1] != table:
            table = way[:-1]
            yield ""
            yield header(table)
        line = f"{way[-1]} is not set" if text is None else f"{way[-1]} = {text}"
        yield f"# {line}" if text is None else f"{line}  # {origin}"


def header(way: Way) -> str:
    """Write the line that opens a table."""
    names = ".".join(str(part) for part in way if isinstance(part, str))
    return f"[[{names}]]" if isinstance(way[-1], int) else f"[{names}]"


LOG = EventLog("settings")

END = ".settings.json"
OF_NODES = ".nodes"
PRIVATE = 0o600
OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC

MARK_LENGTH = 8
"""Characters of a secret's mark: enough to tell two apart, too few to guess by."""

EMPTIED = (
    "{} is empty, and {} beside it belongs to a database that was in use: all that it"
    " held is missing. Put a copy in its place (callboard restore COPY); or, to begin"
    " anew, remove the empty file"
)
"""What to tell people of an emptied database: its path, and what lies beside it."""

NOT_NOTED = "settings in use not noted"

TRIES = 100
"""Times the file is read again while it is being written."""

MOST_FOLDERS = 50
"""Folders beside the settings in which a process's file is looked for."""

Flat = dict[str, str]
"""By dotted name, the value as TOML has it."""


class Applied(msgspec.Struct, frozen=True):
    """What a process goes by."""

    process: int
    at: float
    """Unix seconds at which it took this over."""

    settings: Flat
    waiting: dict[str, str] = {}
    """Saved settings that wait for a restart, with the reason."""

    mistake: str = ""
    """Why what is saved was not taken over; empty: it was."""

    source: str = ""
    """The settings file that it was started with, from the root; empty: not known."""

    admin: tuple[str, int] | None = None
    """Host and port at which operators can ask it; null: nowhere."""

    start: float = 0.0
    """Unix seconds at which it began; 0: not known."""

    host: str = ""
    """Name of its machine, if it is a node: they share the folder."""

    node: str = ""
    """Its name among the nodes; empty: it is none."""

    since: dict[str, float] = {}
    """By dotted name, Unix seconds since when a setting that changed while it ran has
    its value. All others have theirs since the start."""

    def since_of(self, key: str) -> float:
        """Say since when a setting, or all of a table, is as it is; 0: not known."""
        below = (at for name, at in self.since.items() if is_within(name, key))
        return max(below, default=self.start)


IN_LIST = re.compile(r"\[[0-9]+\]")


def is_within(name: str, key: str) -> bool:
    """Tell whether a setting is this one, or one of this table or list.

    Args:
        name: of a setting that there is: `budgets[0].who`.
        key: as people ask for it, without places in lists: `budgets.who`.
    """
    name = IN_LIST.sub("", name)
    return name == key or name.startswith(f"{key}.")


class Elsewhere(msgspec.Struct, frozen=True):
    """A process that runs with another database than its settings say by now."""

    process: int
    database: Path

    @property
    def told(self) -> str:
        """What to tell people of it."""
        return (
            f"process {self.process}, which these settings started, runs with the"
            f" database {self.database}: perhaps the settings changed since"
        )


class NotNotedError(ValueError):
    """A process runs, and what it goes by cannot be read; the text says why."""


def path_of(database: Path, node: str = "") -> Path:
    """Say where the file of a database is.

    Args:
        node: whose; nodes share the folder, and each has a file of its own.
    """
    if node:
        return nodes_beside(database) / f"{node}.json"
    return database.with_name(database.name + END)


def nodes_beside(database: Path) -> Path:
    """Say in which folder each node of a database has its file."""
    return database.with_name(database.name + OF_NODES)


def left_beside(database: Path) -> list[str]:
    """Name what a database that was in use leaves beside it."""
    files = (receipt_key.path_of(database), path_of(database))
    return [each.name for each in files if not is_empty(each)]


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


def flat(config: AppConfig, key: bytes) -> Flat:
    """Write settings so that two can be compared, and no secret is seen.

    Args:
        key: what marks of secrets are made with.
    """

    def shown(value: object) -> str:
        return plain_value(value) + mark_of(value, key)

    plain: object = msgspec.to_builtins(config, enc_hook=shown)
    return {
        dotted(way): toml(value) for way, value in leaves(plain) if value is not None
    }


def mark_of(value: object, key: bytes) -> str:
    """Give what tells a secret from another: nothing for what is none."""
    is_secret = isinstance(value, OpenText) and value.is_secret
    if not (isinstance(value, Secret) or (isinstance(value, OpenText) and is_secret)):
        return ""
    if not value.is_set:
        return ""
    secret = value.reveal().encode("utf-8", "surrogatepass")
    digest = hmac.new(key, b"settings\0" + secret, hashlib.sha256)
    return f" (mark {digest.hexdigest()[:MARK_LENGTH]})"


class AppliedFile:
    """The file, for the life of the process that is run by these settings.

    Args:
        key: what marks of secrets are made with.
        source: the settings file; None: not known.
        admin: host and port at which operators can ask; None: nowhere.
        node: the process's name among the nodes; empty: it is none.
    """

    def __init__(
        self,
        database: Path,
        key: bytes,
        source: Path | None = None,
        admin: tuple[str, int] | None = None,
        node: str = "",
    ) -> None:
        self._admin = admin
        self._node = node
        self._path = path_of(database, node)
        self._key = key
        self._source = "" if source is None else str(source.resolve())
        self._handle: int | None = None
        self._start = 0.0
        self._in_use: Flat | None = None
        self._since: dict[str, float] = {}

    def __enter__(self) -> Self:
        """Take the file; another process may have it, which is only logged."""
        try:
            if self._node:
                self._path.parent.mkdir(mode=0o700, exist_ok=True)
            handle = os.open(self._path, OPEN | os.O_CREAT, PRIVATE)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(handle)
                raise
        except OSError as error:
            LOG.warning(
                "`config diff` will not know of this process",
                file=str(self._path),
                why=str(error.strerror),
            )
        else:
            self._handle = handle
        return self

    def __exit__(self, *_: object) -> None:
        """Empty the file, and let it go."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            os.ftruncate(handle, 0)
            os.close(handle)

    def write(
        self, config: AppConfig, at: float, told: tuple[dict[str, str], str]
    ) -> None:
        """Say what the process goes by; it blocks.

        If that fails, nothing stands there: what stood there is in use no longer.

        Args:
            at: Unix seconds.
            told: what waits for a restart, and what is wrong with what is saved.
        """
        if self._handle is None:
            return
        plain = flat(config, self._key)
        self._date(plain, at)
        body = msgspec.json.encode(
            Applied(
                os.getpid(),
                at,
                plain,
                *told,
                source=self._source,
                admin=self._admin,
                start=self._start,
                since=self._since,
                host=socket.gethostname() if self._node else "",
                node=self._node,
            )
        )
        try:
            done = 0
            while done < len(body):  # a disk that becomes full takes a part
                done += os.pwrite(self._handle, body[done:], done)
            os.ftruncate(self._handle, len(body))
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, 0)
            LOG.warning(
                NOT_NOTED,
                file=str(self._path),
                why=str(error.strerror),
                cure="make room and save the settings again; else `config diff` fails",
            )

    def _date(self, plain: Flat, at: float) -> None:
        """Note since when each setting that changed has its value."""
        if self._in_use is None:
            self._start = at
        else:
            before = self._in_use
            changed = {
                name
                for name in before.keys() | plain.keys()
                if before.get(name) != plain.get(name)
            }
            self._since |= dict.fromkeys(changed, at)
        self._in_use = plain


def read_applied(database: Path, node: str = "") -> Applied | None:
    """Read what the process that has a database goes by; None: none runs.

    Args:
        node: which of several nodes is meant; empty: the process that is alone, or the
            first node on this machine.

    Raises:
        OSError: the file cannot be read.
        NotNotedError: nothing stands in it, or nothing of this release.
    """
    try:
        found = read_held(path_of(database, node))
    except FileNotFoundError:
        found = None
    if found is None and not node:
        found = next(nodes_here(database), None)
    return found


def nodes_here(database: Path) -> Iterator[Applied]:
    """Read what the nodes of a database go by that run on this machine."""
    host = socket.gethostname()
    for path in sorted(nodes_beside(database).glob("*.json")):
        with contextlib.suppress(OSError, NotNotedError):
            found = read_held(path)
            if found is not None and found.host == host:
                yield found


def read_held(path: Path) -> Applied | None:
    """Read such a file; None: nobody has it.

    Raises:
        OSError: the file cannot be read.
        NotNotedError: nothing stands in it, or nothing of this release.
    """
    handle = os.open(path, OPEN)
    try:
        if not is_held(handle):
            return None
        found = b""
        for _ in range(TRIES):
            found = os.pread(handle, os.fstat(handle).st_size, 0)
            try:
                return msgspec.json.decode(found, type=Applied)
            except msgspec.DecodeError:
                continue
        raise NotNotedError(
            f"the process that runs has not noted its settings: {path}"
            f" {'cannot be read' if found else 'is empty'}. It may have only just"
            f" started: try again. Else look for {NOT_NOTED!r} in its log: if the disk"
            " was full, make room and save the settings again"
        )
    finally:
        os.close(handle)


def running_elsewhere(source: Path, database: Path) -> Elsewhere | None:
    """Find a process that these settings started with another database.

    It is looked for in the folders of both, and in those that lie in that of the
    settings.

    Returns:
        The first; None: there is none, as far as can be seen.
    """
    own = str(source.resolve())
    for path in notes_near(source.resolve().parent, database.absolute().parent):
        # Why read first: to look whether somebody has a file takes a lock on it, and
        # who just starts with it should not meet that.
        if path == path_of(database.absolute()) or source_in(path) != own:
            continue
        with contextlib.suppress(OSError, NotNotedError):
            if (found := read_held(path)) is not None:
                other = path.with_name(path.name.removesuffix(END))
                return Elsewhere(found.process, other)
    return None


def notes_near(home: Path, other: Path) -> Iterator[Path]:
    """Give the files of this kind in two folders, and one step below the first."""
    with contextlib.suppress(OSError):
        below = sorted(each for each in home.iterdir() if each.is_dir())
        for folder in dict.fromkeys((home, other, *below[:MOST_FOLDERS])):
            yield from sorted(folder.glob(f"*{END}"))


def source_in(path: Path) -> str:
    """Read by which settings file a process was started; empty: it is not known."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Applied).source
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return ""


def is_held(handle: int) -> bool:
    """Whether a process that runs has a file."""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def differences(applied: Flat, saved: Flat) -> list[str]:
    """Name what differs: `-` what is in use, `+` what is saved instead."""
    lines: list[str] = []
    for name in sorted(applied.keys() | saved.keys()):
        before, after = applied.get(name), saved.get(name)
        if before == after:
            continue
        lines += [f"- {name} = {before}"] if before is not None else []
        lines += [f"+ {name} = {after}"] if after is not None else []
    return lines
