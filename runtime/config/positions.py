"""Where each key and value of a TOML text stands.

The standard library's `tomllib` decides what a text means; it does not say where
a value stood. This module walks the same text once more and notes positions only.
It may be simple because it sees nothing but text that `tomllib` has accepted, and
a property test holds its paths against `tomllib`'s. Chosen over a round-trip TOML
library: those keep comments and layout but give out no line numbers.
"""

from __future__ import annotations

import bisect
import re
import tomllib
from typing import NamedTuple

Path = tuple[str | int, ...]
"""Way from the top of a document: keys of tables and, from 0, places in arrays."""

BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
KEY_PART = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
DOT = re.compile(r"[ \t]*\.[ \t]*")
# Why: the longest form first, so that the opening of a multi-line text is not
# taken for an empty one. Such a text may end in up to five quotes, hence `(?!")`.
SCALAR = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?!")|'
    r"'''.*?'''(?!')|"
    r""""(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^,\]}#\r\n]+""",
    re.DOTALL,
)


class Place(NamedTuple):
    """Where something stands; both from 1, columns in characters."""

    line: int
    column: int


class Spot(NamedTuple):
    """Where a key stands, and where its value begins."""

    key: Place
    value: Place


def locate(text: str) -> dict[Path, Spot]:
    """Note where every key, table, array item and value of a text stands.

    Args:
        text: TOML that `tomllib.loads` has accepted.

    Returns:
        A spot for each path, tables that are only implied among them. For a
        table's header both places are its name; for an item of an array both are
        the item.
    """
    return Walk(text).run()


class Walk:
    """One pass over one text."""

    def __init__(self, text: str) -> None:
        # Why: `tomllib` folds CR LF too; columns and lines stay the same.
        self.text = text.replace("\r\n", "\n")
        self.at = 0
        self.spots: dict[Path, Spot] = {}
        self.sizes: dict[Path, int] = {}
        self.line_starts = [0, *(m.end() for m in re.finditer("\n", self.text))]

    def run(self) -> dict[Path, Spot]:
        """Walk over the whole text."""
        table: Path = ()
        self.skip(BLANK)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self.header()
            else:
                self.pair(table)
            self.skip(BLANK)
        return self.spots

    def place(self, at: int) -> Place:
        """Turn an offset into line and column."""
        line = bisect.bisect_right(self.line_starts, at)
        return Place(line, at - self.line_starts[line - 1] + 1)

    def skip(self, pattern: re.Pattern[str]) -> str:
        """Step over what the pattern matches here, and give it back."""
        found = pattern.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found.group()

    def take(self, token: str) -> bool:
        """Step over white space and then `token`, if it comes next."""
        self.skip(BLANK)
        if not self.text.startswith(token, self.at):
            return False
        self.at += len(token)
        return True

    def key(self) -> list[tuple[str, Place]]:
        """Read a key, dotted or not: its parts and where each stands."""
        parts: list[tuple[str, Place]] = []
        while True:
            place = self.place(self.at)
            raw = self.skip(KEY_PART)
            name = next(iter(tomllib.loads(f"{raw}=0"))) if raw[0] in "\"'" else raw
            parts.append((name, place))
            if not self.skip(DOT):
                return parts

    def descend(self, path: Path, parts: list[tuple[str, Place]]) -> Path:
        """Go down a key from a table, noting tables met for the first time.

        Where the way leads through an array of tables it means the newest one.
        """
        for name, place in parts:
            path = (*path, name)
            self.spots.setdefault(path, Spot(place, place))
            if path in self.sizes:
                path = (*path, self.sizes[path] - 1)
        return path

    def header(self) -> Path:
        """Read `[table]` or `[[array of tables]]`; give back the table's path."""
        is_array = self.text.startswith("[[", self.at)
        self.at += 2 if is_array else 1
        self.skip(BLANK)
        parts = self.key()
        self.take("]]" if is_array else "]")
        if not is_array:
            path = self.descend((), parts)
            place = parts[-1][1]
            self.spots[path] = Spot(place, place)
            return path
        name, place = parts[-1]
        array = (*self.descend((), parts[:-1]), name)
        index = self.sizes.get(array, 0)
        self.sizes[array] = index + 1
        self.spots.setdefault(array, Spot(place, place))
        self.spots[*array, index] = Spot(place, place)
        return (*array, index)

    def pair(self, table: Path) -> None:
        """Read `key = value`."""
        parts = self.key()
        self.take("=")
        self.skip(BLANK)
        name, place = parts[-1]
        path = (*self.descend(table, parts[:-1]), name)
        self.spots[path] = Spot(place, self.place(self.at))
        self.value(path)

    def value(self, path: Path) -> None:
        """Step over a value, noting what stands inside it."""
        if self.take("["):
            index = 0
            while not self.take("]"):
                place = self.place(self.at)
                self.spots[*path, index] = Spot(place, place)
                self.value((*path, index))
                self.take(",")
                index += 1
        elif self.take("{"):
            while not self.take("}"):
                self.pair(path)
                self.take(",")
        else:
            self.skip(SCALAR)
