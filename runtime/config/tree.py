"""Settings files as one tree in which every value knows where it was written.

Reads TOML and the files it includes; later files win key by key. Knows nothing of
which keys there should be: that is `Fit` in `loader.py`.
"""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeGuard, cast

import msgspec

from runtime.config.positions import Path as Way, Place, Spot, locate
from runtime.errors import SettingsError

INCLUDE = "include"
"""The top-level key that names further files; the loader's own."""

SOURCES = frozenset({"env", "file"})
"""The keys of a table that names where a secret is found; one of them is there."""

BEFORE = "before"
"""The key of a secret's table that holds what stands before it, in the open."""

LARGEST_FILE = 1_048_576
"""Bytes of one settings file."""

MOST_FILES = 64
"""Files read for one tree, counted each time."""

HINTS = {
    "Invalid value": 'text stands in quotes: key = "text"',
    "Unescaped": "put a text with backslashes into single quotes: 'C:\\folder'",
    "Cannot overwrite": "the same key or table stands further up",
    "Cannot declare": "the same key or table stands further up",
    "Expected '='": "a line is key = value, or [table]",
}
UNCLOSED = (r"Illegal character '\n'", r"Found invalid", "Unterminated", "Expected \"'")
"""How reasons begin that are a text without an end."""

CLOSED = re.compile(
    r"""
      \#[^\n]*
    | \"{3} (?: \\. | [^\\] )*? \"{3,5} (?!\")
    | '{3} .*? '{3,5} (?!')
    | (?P<long> \"{3} | '{3} )
    | " (?: \\[^\n] | [^"\\\n] )* "
    | ' [^'\n]* '
    | (?P<short> ["'] )
    """,
    re.DOTALL | re.VERBOSE,
)
"""A comment or a text, or the quotes of one that is not closed."""

BRACKETS = {"[": "]", "{": "}"}

OPEN_ENDED = ("Unclosed array", "Unclosed inline table", "Expected ']'")
"""How reasons begin that may be a bracket without an end."""

TOP = Spot(Place(0, 0), Place(0, 0))


class Origin(msgspec.Struct, frozen=True):
    """Where something was written; line 0 means the whole file."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        """Write it as editors and terminals understand it, without the column."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def error(self, text: str, hint: str = "") -> SettingsError:
        """Make the error that points here."""
        return SettingsError(
            text, file=self.file, line=self.line, column=self.column, hint=hint
        )


class Node(msgspec.Struct, frozen=True):
    """A value of the tree: a table, an array, or anything simple."""

    content: object
    """A dict or list of nodes, or the plain value."""

    key: Origin
    value: Origin

    def table(self) -> dict[str, Node] | None:
        """Give its keys, if it is a table."""
        return self.content if is_table(self.content) else None

    def items(self) -> list[Node] | None:
        """Give its items, if it is an array."""
        return self.content if is_array(self.content) else None


def is_table(content: object) -> TypeGuard[dict[str, Node]]:
    """Tell whether a node's content is a table; nodes hold no other dicts."""
    return isinstance(content, dict)


def is_source(table: Mapping[str, Node]) -> bool:
    """Tell whether a table can only name where a secret is found."""
    return bool(SOURCES & table.keys()) and all(
        key in {*SOURCES, BEFORE} and isinstance(node.content, str)
        for key, node in table.items()
    )


def is_array(content: object) -> TypeGuard[list[Node]]:
    """Tell whether a node's content is an array; nodes hold no other lists."""
    return isinstance(content, list)


def parse(text: str, file: str) -> Node:
    """Turn one TOML text into a tree; an `include` in it is an ordinary key here.

    Args:
        file: what errors and origins call it.

    Raises:
        SettingsError: it is not TOML; points to where reading had to stop.
    """
    try:
        # Why: both descend by recursion, and a thousand brackets must not end
        # the program.
        document: object = tomllib.loads(text)
        spots = locate(text)
        return build(document, (), spots, file)
    except tomllib.TOMLDecodeError as error:
        raise syntax_error(str(error), text, file) from error
    except RecursionError as error:
        raise SettingsError("nested too deeply to be settings", file=file) from error
    except ValueError as error:
        # Python refuses whole numbers of thousands of digits with a bare ValueError.
        reason = str(error).partition(";")[0]
        raise SettingsError(f"a number is too long: {reason}", file=file) from error


def syntax_error(message: str, text: str, file: str) -> SettingsError:
    """Take line and column out of `tomllib`'s text, which alone has them."""
    reason, _, where = message.rpartition(" (at ")
    if reason.startswith(UNCLOSED) and (opening := unclosed(text)):
        quote, place = opening
        told = f"not valid TOML: the text that begins here with {quote} has no end"
        in_line = "" if len(quote) > 1 else " in the same line"
        return Origin(file, *place).error(told, f"put {quote} behind it{in_line}")
    if reason.startswith(OPEN_ENDED) and (opening := open_bracket(text)):
        bracket, place = opening
        told = f"not valid TOML: the {bracket} here has no end"
        hint = f"put {BRACKETS[bracket]} where it ends"
        return Origin(file, *place).error(told, hint)
    found = re.match(r"line (\d+), column (\d+)", where)
    lines = text.splitlines() or [""]
    place = (
        Place(int(found[1]), int(found[2]))
        if found
        else Place(len(lines), len(lines[-1]) + 1)
    )
    hint = next((HINTS[start] for start in HINTS if reason.startswith(start)), "")
    return Origin(file, *place).error(f"not valid TOML: {reason}", hint)


def unclosed(text: str) -> tuple[str, Place] | None:
    """Find the first text without an end: its quotes, and where they stand."""
    for match in CLOSED.finditer(text):
        if quote := match["long"] or match["short"]:
            return quote, place_of(text, match.start())
    return None


def open_bracket(text: str) -> tuple[str, Place] | None:
    """Find the first bracket without an end, and where it stands."""
    bare = CLOSED.sub(lambda found: " " * len(found[0]), text)
    standing: list[int] = []
    for found in re.finditer(r"[][{}]", bare):
        if found[0] in BRACKETS:
            standing.append(found.start())
        elif standing:
            standing.pop()
    return (text[standing[0]], place_of(text, standing[0])) if standing else None


def place_of(text: str, at: int) -> Place:
    """Say in which line and column a character stands."""
    before = text[:at]
    return Place(before.count("\n") + 1, at - before.rfind("\n"))


def build(value: object, way: Way, spots: dict[Way, Spot], file: str) -> Node:
    """Join values and their positions."""
    spot = spots.get(way, TOP)
    content = value
    if isinstance(value, dict):
        content = {
            name: build(child, (*way, name), spots, file)
            for name, child in cast("dict[str, object]", value).items()
        }
    elif isinstance(value, list):
        content = [
            build(child, (*way, index), spots, file)
            for index, child in enumerate(cast("list[object]", value))
        ]
    return Node(content, Origin(file, *spot.key), Origin(file, *spot.value))


def merge(older: Node, newer: Node) -> Node:
    """Lay one tree over another: tables key by key, everything else as a whole.

    A secret's source is no table in this sense: of `{ env = … }` and `{ file = … }`
    the newer one counts.
    """
    below, above = older.table(), newer.table()
    if below is None or above is None or (is_source(below) and is_source(above)):
        return newer
    content = dict(below)
    for name, node in above.items():
        content[name] = merge(below[name], node) if name in below else node
    return Node(content, newer.key, newer.value)


def override(top: Node, given: Node) -> Node:
    """Lay what was given beside a file over it; its tables keep their places there."""
    below, above = top.table(), given.table()
    if below is None or above is None or (is_source(below) and is_source(above)):
        return given
    content = dict(below)
    for name, node in above.items():
        content[name] = override(below[name], node) if name in below else node
    return Node(content, top.key, top.value)


def variables(top: Node) -> Iterator[str]:
    """Name the variables of the environment that a tree takes secrets from."""
    table = top.table()
    if table is not None and is_source(table) and "env" in table:
        yield str(table["env"].content)
    for each in top.items() or () if table is None else table.values():
        yield from variables(each)


def assignment(key: str, value: str, label: str) -> Node:
    """Make a tree of one setting that was given beside the file.

    Args:
        key: its dotted name, as in TOML.
        value: as TOML has it; what is no TOML is a text.
        label: what errors and origins call it.

    Raises:
        SettingsError: the key is none. The text does not repeat the value, which may
            be a secret at the wrong place.
    """
    text: object = value
    with contextlib.suppress(tomllib.TOMLDecodeError, RecursionError, ValueError):
        text = value if "\n" in value else tomllib.loads(f"value = {value}")["value"]
    try:
        # Why so: quotes and dots in a key mean what they mean in a file.
        tree: dict[str, object] = tomllib.loads(f"{key} = 0")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        hint = "for example: --set log.level=debug"
        raise Origin(label).error("this names no setting", hint) from error
    return build(filled(tree, text), (), {}, label)


def filled(tree: dict[str, object], value: object) -> dict[str, object]:
    """Put a value at the one end of a tree that has no branches."""
    return {
        name: filled(cast("dict[str, object]", child), value)
        if isinstance(child, dict)
        else value
        for name, child in tree.items()
    }


def inherit(top: Node, source: str, heirs: str) -> Node:
    """Lay each table inside `heirs` over `source`, key by key at every depth.

    An heir takes what its own table does not say, also inside tables of that table.
    """
    tables = top.table() or {}
    if source not in tables or heirs not in tables:
        return top
    group = tables[heirs].table()
    if tables[source].table() is None or group is None:
        return top
    content: dict[str, Node] = {}
    for name, heir in group.items():
        content[name] = merge(tables[source], heir)
    family = Node(content, tables[heirs].key, tables[heirs].value)
    return Node({**tables, heirs: family}, top.key, top.value)


class FileReader:
    """Reads a settings file with all its includes, and collects the errors.

    Args:
        instead: by resolved path, what is read instead of a file's own text.
    """

    def __init__(self, instead: Mapping[Path, str] | None = None) -> None:
        self._instead = instead or {}
        self.errors: list[SettingsError] = []
        self.files: list[Path] = []

    def read(self, path: Path, chain: tuple[Path, ...] = ()) -> Node:
        """Read one file, its includes below it.

        Args:
            chain: the files that led here, resolved, to find circles.

        Returns:
            The merged tree; without the parts that `errors` tells about.
        """
        self.files.append(path)
        try:
            text = self._instead.get(path.resolve()) if self._instead else None
            top = parse(read_text(path) if text is None else text, str(path))
        except SettingsError as error:
            self.errors.append(error)
            return Node({}, Origin(str(path)), Origin(str(path)))
        content = dict(top.table() or {})
        includes = content.pop(INCLUDE, None)
        own = Node(content, top.key, top.value)
        if includes is None:
            return own
        base = Node({}, top.key, top.value)
        for item in self.names(includes):
            included = self.included(item, path, (*chain, path.resolve()))
            base = base if included is None else merge(base, included)
        return merge(base, own)

    def names(self, includes: Node) -> list[Node]:
        """Give the items of an `include` that are texts, complaining of others."""
        items = includes.items()
        for node in [includes] if items is None else items:
            if items is None or not isinstance(node.content, str):
                self.errors.append(
                    node.value.error(
                        "include must be a list of file names",
                        'for example: include = ["models.toml"]',
                    )
                )
        return [node for node in items or [] if isinstance(node.content, str)]

    def included(self, item: Node, path: Path, chain: tuple[Path, ...]) -> Node | None:
        """Read one included file, unless it is one too many."""
        target = beside(str(path), str(item.content))
        if target.resolve() in chain:
            problem = f"{target} includes itself, in the end"
            hint = "take one include of the circle out"
        elif len(self.files) >= MOST_FILES:
            problem = f"more than {MOST_FILES} files are included"
            hint = "put them together"
        elif not target.exists():
            problem = f"the included file {target} does not exist"
            hint = "the path starts at the folder of the file that includes it"
        else:
            return self.read(target, chain)
        self.errors.append(item.value.error(problem, hint))
        return None


def read_text(path: Path) -> str:
    """Read a settings file whole.

    Raises:
        SettingsError: it cannot be read, is too long, or is not UTF-8.
    """
    try:
        # Why: opening a pipe waits until somebody writes into it, perhaps for ever.
        if not (path.is_file() or path.is_dir()) and path.exists():
            text = "cannot be read: it is a pipe or a device, not a file"
            raise SettingsError(text, file=str(path), hint="copy it into a file")
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise SettingsError(
            f"cannot be read: {error.strerror or error}", file=str(path)
        ) from error
    if len(content) > LARGEST_FILE:
        raise SettingsError(f"is longer than {LARGEST_FILE} bytes", file=str(path))
    try:
        # Why -sig: some editors put an invisible mark in front of the first line.
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        column = error.start - before.rfind(b"\n")
        origin = Origin(str(path), before.count(b"\n") + 1, column)
        raise origin.error("is not UTF-8 text", "save it as UTF-8") from error


def beside(file: str, text: str) -> Path:
    """Read a path as written in a settings file: from that file's folder, or `~`."""
    # Why: no file's name holds a NUL, and the system refuses it as a mistake of ours.
    text = text.replace("\0", "\ufffd")
    try:
        path = Path(text).expanduser()
    except RuntimeError:
        # There is no such user; then there is no such file either.
        path = Path(text)
    return Path(file).parent / path
