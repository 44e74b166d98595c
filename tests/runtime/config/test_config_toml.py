"""Proves that positions of keys and values are true for whatever TOML can say."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import cast

import pytest
from hypothesis import given, strategies as st

from runtime.config.positions import Path, Place, Spot, locate

SCALARS = (
    "1",
    "-0.5e3",
    "0xff",
    "true",
    "inf",
    "2026-11-21T03:30:00Z",
    "2026-11-21 03:30:00",
    '""',
    '"a # ] } , = [x] \\" \\\\"',
    "'C:\\[x] # \"'",
    '"""one\n[two]\n# "" three = 3"""',
    '"""ends in quotes"""""',
    '"""a \\""" b\\\\"""',
    "'''\n[a]\nb = 'c'\n'''",
    "'''q''''",
    '""""""',
    '"ünï 😀"',
)
WHITE = ("", " ", "\t ")
LINE_ENDS = ("\n", " # [not] a = table\n", "\r\n", "\n\n  # x\n")
INNER = ("", " ", "\n  ", " # ] , }\n ")
NAMES = {
    "plain-1": "plain-1",
    '"quo.ted # \\u00e9"': "quo.ted # é",
    "'lit [x]'": "lit [x]",
}


class Writer:
    """Writes a random document and notes where everything went."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.text = ""
        self.count = 0
        self.spots: dict[Path, tuple[int, int]] = {}

    def one_of(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def write(self, text: str) -> int:
        """Append; give back where it began."""
        at = len(self.text)
        self.text += text
        return at

    def name(self) -> tuple[str, str]:
        """Make a key that is new in the document: as written, and as meant."""
        self.count += 1
        written = self.one_of(*NAMES)
        end = written[-1] if written[-1] in "\"'" else ""
        number = f"_{self.count}"
        return written.removesuffix(end) + number + end, NAMES[written] + number

    def key(self, table: Path, parts: int) -> Path:
        for index in range(parts):
            written, meant = self.name()
            table = (*table, meant)
            if index:
                self.write(self.one_of(*WHITE) + "." + self.one_of(*WHITE))
            at = self.write(written)
            self.spots[table] = (at, at)
        return table

    def pair(self, table: Path, depth: int, *, inline: bool) -> None:
        path = self.key(table, self.draw(st.integers(1, 3)))
        self.write(self.one_of(*WHITE) + "=" + self.one_of(*WHITE))
        self.spots[path] = (self.spots[path][0], len(self.text))
        self.value(path, depth, inline=inline)

    def value(self, path: Path, depth: int, *, inline: bool = False) -> None:
        kind = self.one_of("scalar", "array", "table") if depth else "scalar"
        if kind == "scalar":
            self.write(self.one_of(*SCALARS))
        elif kind == "array":
            self.array(path, depth, inline=inline)
        else:
            self.write("{")
            for index in range(self.draw(st.integers(0, 2))):
                self.write((", " if index else "") + self.one_of(*WHITE))
                self.pair(path, depth - 1, inline=True)
            self.write(self.one_of(*WHITE) + "}")

    def array(self, path: Path, depth: int, *, inline: bool) -> None:
        self.write("[")
        size = self.draw(st.integers(0, 3))
        for index in range(size):
            self.write(self.one_of(*INNER))
            self.spots[*path, index] = (len(self.text), len(self.text))
            self.value((*path, index), depth - 1, inline=inline)
            last = index == size - 1
            self.write(self.one_of(*INNER) + (self.one_of("", ",") if last else ","))
        self.write(self.one_of(*INNER) + "]")

    def pairs(self, table: Path) -> None:
        for _ in range(self.draw(st.integers(0, 2))):
            self.write(self.one_of(*WHITE))
            self.pair(table, 2, inline=False)
            self.write(self.one_of(*LINE_ENDS))

    def header(self) -> None:
        self.write(self.one_of(*WHITE) + "[" + self.one_of(*WHITE))
        path = self.key((), self.draw(st.integers(1, 3)))
        self.write(self.one_of(*WHITE) + "]" + self.one_of(*LINE_ENDS))
        self.pairs(path)

    def tables(self) -> None:
        """Write an array of tables, a table below one item, and one more item."""
        written, meant = self.name()
        for index in range(2):
            at = self.write("[[") + 2
            self.write(written + "]]\n")
            self.spots.setdefault((meant,), (at, at))
            self.spots[meant, index] = (at, at)
            self.pairs((meant, index))
            self.write(f"[{written}.")
            below = self.key((meant, index), 1)
            self.write("]\n")
            self.pairs(below)


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, dict[Path, Spot]]:
    writer = Writer(draw)
    writer.pairs(())
    for _ in range(draw(st.integers(0, 2))):
        writer.header()
    if draw(st.booleans()):
        writer.tables()
    text = writer.text
    return text, {
        path: Spot(place(text, key), place(text, value))
        for path, (key, value) in writer.spots.items()
    }


def place(text: str, at: int) -> Place:
    before = text[:at]
    return Place(before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1)


def paths(value: object, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, child in cast("dict[str, object]", value).items():
            yield from paths(child, (*path, key))
    if isinstance(value, list):
        for index, child in enumerate(cast("list[object]", value)):
            yield from paths(child, (*path, index))


@given(document=documents())
def test_every_key_and_value_is_found_where_it_was_written(
    document: tuple[str, dict[Path, Spot]],
) -> None:
    text, expected = document
    assert locate(text) == expected


@given(document=documents())
def test_the_paths_are_those_that_tomllib_gives(
    document: tuple[str, dict[Path, Spot]],
) -> None:
    text, _ = document
    assert set(locate(text)) == set(paths(tomllib.loads(text)))


@pytest.mark.parametrize("scalar", SCALARS)
def test_what_follows_a_scalar_is_found(scalar: str) -> None:
    spots = locate(f"a = {{ b = {scalar}, c = 1 }}\nd = 2\n")
    lines = scalar.count("\n")
    assert spots["d",].key == Place(2 + lines, 1)
    assert ("a", "c") in spots


def test_columns_count_characters_and_not_bytes() -> None:
    spots = locate('"ü😀" = 1 # é\nb = { "😀" = 2, c = 3 }\n')
    assert spots["ü😀",].value == Place(1, 8)
    assert spots["b", "c"] == Spot(Place(2, 16), Place(2, 20))


def test_an_empty_text_has_no_places() -> None:
    assert locate("") == {}
    assert locate("\n# only a comment") == {}
