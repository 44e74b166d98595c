"""Changes a settings file: comments stay, mistakes are not written.

The new text is checked as the whole program would read it, with all that the settings
include, and takes its place in one step, so that a running company never reads half of
it. `callboard agents` and the web page both change settings by this.
"""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Mapping, MutableMapping, MutableSequence
from contextlib import suppress
from pathlib import Path
from typing import cast

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array

from connectors.admin.settings import Way
from connectors.config.app import AppConfig
from connectors.settings.load import load_app
from runtime.config.loader import Settings
from runtime.config.messages import dotted
from runtime.errors import SettingsError

PREFIX = ".callboard-edit-"
AGENTS = "agents"

TomlTable = MutableMapping[str, object]
"""A table of tomlkit, which keeps the comments in it."""


class EditedSettings:
    """A settings file that is being changed.

    Args:
        path: the file; a link is followed.
        whole: the settings file that includes it; None: it is that file itself.

    Raises:
        SettingsError: it is no TOML.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path, whole: Path | None = None) -> None:
        self.path = path.resolve()
        self._whole = whole or path
        self.before = self.path.read_bytes()
        try:
            self.document = cast("TomlTable", tomlkit.parse(self.before))
        except (TOMLKitError, UnicodeDecodeError) as error:
            raise SettingsError(f"is no TOML: {error}", file=str(path)) from error
        self._more = ""

    @property
    def text(self) -> str:
        """The whole new text."""
        text = tomlkit.dumps(self.document)
        return f"{text.rstrip()}\n{self._more}" if self._more else text

    def agents(self) -> dict[str, TomlTable]:
        """Give the tables of agents that stand in this file, by name."""
        above = table_in(self.document, AGENTS)
        found = {name: table_in(above, name) for name in above or ()} if above else {}
        return {name: table for name, table in found.items() if table is not None}

    def add_agent(self, name: str, values: Mapping[str, object]) -> None:
        """Put a table behind all others."""
        self._add_table((AGENTS, name), values)

    def _add_table(self, names: tuple[str, ...], values: Mapping[str, object]) -> None:
        """Put a table behind all others."""
        inner = tomlkit.table()
        for key, value in values.items():
            assign(cast("TomlTable", inner), key, value)
        for name in reversed(names[1:]):
            above = tomlkit.table(is_super_table=True)
            above.append(name, inner)
            inner = above
        added = tomlkit.document()
        added.append(names[0], inner)
        self._more += f"\n{tomlkit.dumps(added)}"

    def drop_agent(self, name: str) -> None:
        """Take an agent's table out."""
        above = table_in(self.document, AGENTS)
        if above is not None:
            del above[name]

    def delegate(self, above: str, name: str, *, is_wanted: bool) -> bool:
        """Let an agent hand work to another, or no more; False: it is so already."""
        known = self.agents()[above].setdefault("delegates", tomlkit.array())
        if not isinstance(known, Array):
            return False
        names = cast("list[str]", known)
        if (name in names) == is_wanted:
            return False
        if is_wanted:
            names.append(name)
        else:
            names.remove(name)
        return True

    def has(self, way: Way) -> bool:
        """Whether something stands in this file under these keys and places."""
        found: object = self.document
        for part in way:
            found = inside(found, part)
            if found is None:
                return False
        return True

    def put(self, way: Way, value: object) -> None:
        """Set one setting, wherever it stands; None takes it out.

        Args:
            way: keys of tables and, from 0, places in lists of tables.

        Raises:
            SettingsError: there is no such place in this file.
        """
        found: object = self.document
        for number, part in enumerate(way[:-1]):
            further = inside(found, part)
            if further is None:
                names = [str(each) for each in way[number:] if isinstance(each, str)]
                if len(names) != len(way) - number:
                    break
                if value is None:
                    return
                if number == 0:
                    self._add_table(tuple(names[:-1]), {names[-1]: value})
                    return
                # Why inline: in a table that is inline itself no other may stand.
                further = tomlkit.inline_table()
                cast("TomlTable", found)[str(part)] = further
                further = inside(found, part)
            found = further
        key = way[-1]
        if not isinstance(found, MutableMapping) or not isinstance(key, str):
            text = f"{dotted(way)} does not stand in this file"
            raise SettingsError(text, file=str(self.path))
        table = cast("TomlTable", found)
        if value is None:
            table.pop(key, None)
        else:
            table[key] = tomlkit.item(value)

    def difference(self) -> list[str]:
        """Name the lines that change: `-` what stands there, `+` what takes its place.

        Before each run of lines stands where it begins: `@ 12`.
        """
        before = self.before.decode("utf-8-sig").splitlines()
        after = self.text.splitlines()
        lines: list[str] = []
        found = difflib.SequenceMatcher(None, before, after, autojunk=False)
        for what, first, end, begin, last in found.get_opcodes():
            if what != "equal":
                lines.append(f"@ {first + 1}")
                lines += [f"- {each}" for each in before[first:end]]
                lines += [f"+ {each}" for each in after[begin:last]]
        return lines

    def check(self) -> Settings[AppConfig]:
        """Read the settings as they would be.

        Raises:
            SettingsError: they would be wrong.
        """
        instead = {self.path: self.text}
        return load_app(self._whole, os.environ, needs_secrets=False, instead=instead)

    def save(self) -> Settings[AppConfig]:
        """Check the new settings, and write them.

        Raises:
            SettingsError: they would be wrong, or the file was changed meanwhile;
                nothing was written.
            OSError: they cannot be written.
        """
        checked = self.check()
        number, name = tempfile.mkstemp(
            ".toml", prefix=PREFIX, dir=self.path.parent, text=False
        )
        new = Path(name)
        try:
            with os.fdopen(number, "wb") as file:
                file.write(self.text.encode())
                file.flush()
                before = self.path.stat()
                with suppress(PermissionError):  # only root may give a file away
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
                os.fchmod(file.fileno(), before.st_mode & 0o777)
                os.fsync(file.fileno())
            if self.path.read_bytes() != self.before:
                text = "was changed meanwhile; nothing was written"
                raise SettingsError(text, file=str(self.path))
            new.replace(self.path)
        finally:
            new.unlink(missing_ok=True)
        return checked


def inside(above: object, part: str | int) -> object:
    """Give what a table has under a key, or a list at a place; None: nothing."""
    if isinstance(part, str):
        is_table = isinstance(above, MutableMapping)
        return cast("TomlTable", above).get(part) if is_table else None
    if not isinstance(above, MutableSequence):
        return None
    items = cast("MutableSequence[object]", above)
    return items[part] if part < len(items) else None


def table_in(above: TomlTable, key: str) -> TomlTable | None:
    """Give a table that stands in another; None: there is none."""
    found = above.get(key)
    return cast("TomlTable", found) if isinstance(found, MutableMapping) else None


def assign(table: TomlTable, key: str, value: object) -> None:
    """Set a key of a table, or of one inside it: `heartbeat.every`; None removes it."""
    first, _, rest = key.partition(".")
    if rest:
        if value is None and first not in table:
            return
        if table_in(table, first) is None:
            # Why inline: in a table that is inline itself no other may stand.
            table[first] = tomlkit.inline_table()
        inner = table_in(table, first)
        if inner is not None:
            assign(inner, rest, value)
    elif value is None:
        table.pop(first, None)
    else:
        table[first] = tomlkit.item(value)


def read_value(text: str) -> object:
    """Read one value; what is no TOML value is a text, and nothing is None."""
    if not text:
        return None
    with suppress(TOMLKitError):
        found: object = tomlkit.parse(f"x = {text}").unwrap()["x"]
        return found
    return text
