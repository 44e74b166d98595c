"""Proves that complaints say in words what a setting takes, with a fitting example."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta
from msgspec import inspect as shapes

from runtime.config_tree import inherit, parse
from runtime.config_words import sample, toml, wanted


class Table(msgspec.Struct):
    key: str


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (bool, "true or false"),
        (int, "a whole number"),
        (Annotated[int, Meta(ge=1)], "a whole number of at least 1"),
        (Annotated[int, Meta(ge=1, le=65_535)], "a whole number from 1 to 65_535"),
        (Annotated[float, Meta(gt=0, lt=1)], "a number above 0 and below 1"),
        (Annotated[float, Meta(le=2)], "a number at most 2"),
        (Literal["a", "b"], '"a" or "b"'),
        (str, "a text"),
        (Annotated[str, Meta(max_length=16)], "a text of at most 16 characters"),
        (
            Annotated[str, Meta(min_length=4, max_length=9)],
            "a text that is not empty, of at most 9 characters",
        ),
        (Annotated[str, Meta(description="a colour")], "a colour"),
    ],
)
def test_what_a_setting_takes_is_said_in_words(kind: type, expected: str) -> None:
    assert wanted(shapes.type_info(kind)) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (bool, "true"),
        (int, "10"),
        (Annotated[int, Meta(ge=3)], "3"),
        (Annotated[float, Meta(ge=0, le=2)], "1.0"),
        (Literal["a", "b"], '"a"'),
        (tuple[int, ...], "[10]"),
        (int | None, "10"),
        (Table, "{ … }"),
        (dict[str, int], "{ … }"),
        (str, '"…"'),
    ],
)
def test_a_setting_without_a_default_has_an_example(kind: type, expected: str) -> None:
    assert sample(shapes.type_info(kind)) == expected


def test_values_are_written_as_toml_writes_them() -> None:
    assert toml(["a", 1, True, 0.5, ('"ü"',)]) == '["a", 1, true, 0.5, ["\\"ü\\""]]'


@pytest.mark.parametrize("text", ["", "a.x = 1", "a.x = 1\nb = 2", "a = 1\nb.c.x = 2"])
def test_without_two_tables_nothing_is_inherited(text: str) -> None:
    top = parse(text, "f")
    assert inherit(top, "a", "b") == top


def test_an_heir_that_is_no_table_inherits_nothing() -> None:
    top = parse("a.x = 1\nb.c = 2", "f")
    assert inherit(top, "a", "b") == top
