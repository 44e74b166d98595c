"""Finds what the runtime says to people: the texts that every catalogue must have."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from types import ModuleType

from actors.commands import (
    dispatch as desk,
    people as desk_people,
    registry,
    status as desk_reports,
)
from actors.memory import notebook as jotting, notes as noting, review as considering
from actors.rules.markers import outcomes as confirming, parser as markers
from actors.rules.text import durations as spans
from actors.schedule import messages as arrangement
from actors.turn import actions as conducting

COMMANDS = Path(desk.__file__).parent
FIELD = re.compile(r"\{(\w+)\}")


def said() -> set[str]:
    """Collect all that is looked up in a catalogue by its English words."""
    found = {spec.meaning for spec in registry.COMMANDS.values()}
    found |= {*desk.NOT_ALLOWED.values(), *desk_people.NOT_LINKED.values()}
    found |= {*desk_people.NOT_DONE.values(), *desk_people.DONE.values()}
    found |= {*desk_reports.POLICIES.values(), *desk_reports.PACES.values()}
    found |= {text for _, *texts in spans.UNITS for text in texts}
    found |= {*confirming.ENGLISH.values(), *reasons()}
    for path in sorted(COMMANDS.glob("*.py")):
        module = importlib.import_module(f"actors.commands.{path.stem}")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and is_say(node.func):
                found |= texts_of(node.args[0], module)
    return found


def reasons() -> set[str]:
    """Collect why something is not done, as far as the words are always the same."""
    told = {
        arrangement.NOBODY,
        conducting.LATER,
        considering.FORGOTTEN,
        jotting.NO_BOOK,
    }
    told |= {noting.LATER, noting.OFF, *markers.EXPLANATIONS.values()}
    return {each for each in told if not FIELD.search(each)}


def is_say(called: ast.expr) -> bool:
    """Whether this is how a text is looked up."""
    name = called.attr if isinstance(called, ast.Attribute) else None
    return (called.id if isinstance(called, ast.Name) else name) == "say"


def texts_of(given: ast.expr, module: ModuleType) -> set[str]:
    """Give the text, if it stands there or has a name of its own."""
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        return {given.value}
    value: object = getattr(module, given.id, "") if isinstance(given, ast.Name) else ""
    return {value} if isinstance(value, str) and value else set()


def fields(text: str) -> list[str]:
    """Name the placeholders of a text."""
    return sorted(FIELD.findall(text))
