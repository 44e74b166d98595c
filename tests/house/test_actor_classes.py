"""Proves that an actor is one class: it holds parts, and has no other actor as base."""

from __future__ import annotations

import ast
from pathlib import Path

DOMAIN = Path(__file__).parents[2] / "actors"

# Chosen: what one can read in one sitting; its parts stand in files of their own.
MOST_LINES = {"Session": 700}


def classes() -> list[ast.ClassDef]:
    """Give every class of the domain."""
    return [
        node
        for path in sorted(DOMAIN.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
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
