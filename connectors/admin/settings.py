"""The settings in effect, written for people: each with where it comes from.

Never shows a secret: what leaves here may be pasted into a bug report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeGuard

import msgspec

from runtime.config.messages import dotted, toml
from runtime.secret import OpenText, Secret

if TYPE_CHECKING:
    from connectors.config.app import AppConfig
    from runtime.config.loader import Settings

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


class SettingsEditor(Protocol):
    """Changes settings of a running company by hand; its calls block."""

    def refusal(self, way: Way) -> str:
        """Say why a setting is not changed here; empty: it may be."""
        ...

    def propose(self, name: str, text: str | None) -> ProposedSetting:
        """Check a change.

        Args:
            name: the setting's dotted name.
            text: what it is to be, as TOML has it; None: as it is.

        Raises:
            MisuseError: there is no such setting, or it is not changed here.
        """
        ...

    def write(self, name: str, text: str, mark: str) -> ProposedSetting:
        """Check a change once more, and write it.

        Args:
            name: the setting's dotted name.
            text: what it is to be.
            mark: of the proposal that somebody agreed to.

        Raises:
            MisuseError: it is not changed here, or is wrong; nothing was written.
        """
        ...


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
        settings: all there are.
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
