"""Proves that an actor is one class: it holds parts, and has no other actor as base.

And that none keeps silent about a message that it does not know.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from functools import cache
from pathlib import Path

from runtime.actor.actor import Actor
from runtime.errors import MisuseError
from tests.house.test_house import statements

ROOT = Path(__file__).parents[2]
DOMAIN = ROOT / "actors"

LOOK_AT_THEMSELVES = {"Hook", "Notifier"}
"""Actors that need what they hold before they look at a message."""

# Chosen: what one can read in one sitting; its parts stand in files of their own.
MOST_LINES = {"Session": 700}


@cache
def classes() -> list[ast.ClassDef]:
    """Give every class of the domain."""
    return [
        node
        for path in sorted(DOMAIN.rglob("*.py"))
        for node in statements(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]


def bases_of(node: ast.ClassDef) -> set[str]:
    """Give the names of a class's bases, without their modules."""
    return {ast.unparse(base).rpartition(".")[2] for base in node.bases}


def actors_among(found: list[ast.ClassDef]) -> list[ast.ClassDef]:
    """Give the classes that inherit from `Actor`, by whatever way."""
    known, actors = {"Actor"}, list[ast.ClassDef]()
    while new := [x for x in found if x not in actors and bases_of(x) & known]:
        actors += new
        known |= {each.name for each in new}
    return actors


def is_empty(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Tell whether a method has a docstring and nothing else."""
    return all(
        isinstance(each, ast.Pass)
        or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        for each in node.body
    )


def test_no_actor_inherits_from_another_actor() -> None:
    heirs = {
        each.name for each in actors_among(classes()) if bases_of(each) != {"Actor"}
    }
    assert heirs == set()


def test_no_actor_has_an_empty_method_for_others_to_fill() -> None:
    empty = [
        f"{each.name}.{method.name}"
        for each in actors_among(classes())
        for method in each.body
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
        and is_empty(method)
    ]
    assert empty == []


def test_large_actors_stay_within_their_lines() -> None:
    lines = {
        each.name: (each.end_lineno or 0) - each.lineno + 1
        for each in actors_among(classes())
        if each.name in MOST_LINES
    }
    assert set(lines) == set(MOST_LINES)
    assert {x for x, most in MOST_LINES.items() if lines[x] > most} == set()


def product_actors() -> list[type[Actor]]:
    """Import every class of an actor that takes messages."""
    found: list[type[Actor]] = []
    for path in sorted([*DOMAIN.rglob("*.py"), *(ROOT / "connectors").rglob("*.py")]):
        if "def on_receive(" in path.read_text("utf-8"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found += [
                each
                for each in vars(importlib.import_module(name)).values()
                if isinstance(each, type)
                and issubclass(each, Actor)
                and each.__module__ == name
                and "on_receive" in vars(each)
            ]
    return found


def is_silent(kind: type[Actor]) -> bool:
    """Tell whether an actor takes a message that nobody ever sends."""
    whoever = object.__new__(kind)  # which message it is, is asked first
    try:
        answer = whoever.on_receive(object())
        if inspect.iscoroutine(answer):
            answer.send(None)
    except MisuseError as error:
        return str(error) != f"{kind.__name__} does not handle object"
    return True


def test_no_actor_keeps_silent_about_a_message_that_it_does_not_know() -> None:
    actors = product_actors()
    assert len(actors) > 30
    asked = [each for each in actors if each.__name__ not in LOOK_AT_THEMSELVES]
    assert len(asked) == len(actors) - len(LOOK_AT_THEMSELVES)
    assert [each.__name__ for each in asked if is_silent(each)] == []
