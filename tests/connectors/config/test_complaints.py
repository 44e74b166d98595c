"""Proves that each complaint about settings has its place, its words and its cure.

`complaints.txt` has wrong settings, each block with what is said of it. A block ends
with `--`; the lines after that are errors and warnings, whole.
"""

from __future__ import annotations

import ast
import re
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from connectors.settings.load import load_app
from runtime.errors import SettingsError

ROOT = Path(__file__).parents[3]
EXAMPLES = Path(__file__).with_name("complaints.txt")

EXAMPLED = ("connectors", "actors")
"""Folders of tests that show complaints, too."""

SAYS = 8
"""Characters from which on a part of a text says something."""

BROKEN = re.compile(r'"\s*\n\s*f?"')
"""Where a long text goes on in the next line."""

INSTALLED = re.compile("installed|install |extra|^the package$")
"""What the machine lacks cannot be shown where it is not lacking."""

BASE = """\
default_agent = "anna"
"""
TABLES = """\
[models.scripted]
kind = "scripted"
script = "rules.toml"
[connectors.terminal]
kind = "terminal"
[agents.anna]
prompt = "You are Anna."
[agents.ben]
prompt = "You are Ben."
"""

SKILL = """\
---
name: pdf
description: Reads PDF files.
interceptor: python3 gate.py
mcp:
  reader:
    command: read-pdf
---
Read it.
"""

ENVIRONMENT = {
    "KEY_A": "first-key-of-thirty-letters-ab",
    "KEY_B": "second-key-of-thirty-letters-ab",
    "KEY_C": "shortkey1",
    "XOXB": "xoxb-1-2-3",
    "BOT": "12345678:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "SIGNING": "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
    "SIGNING_B": "whsec_YWJjZGVmZ2hpamFiY2RlZmdoaWphYmNkZWZnaGlqYWI=",
}


def blocks() -> Iterator[tuple[str, str, str]]:
    """Give the title, the settings and the words of each example."""
    for text in EXAMPLES.read_text(encoding="utf-8").split("\n# "):
        settings, _, told = text.removeprefix("# ").partition("\n--")
        title, _, settings = settings.partition("\n")
        yield title, settings, told.strip()


def complaints(folder: Path, text: str) -> Iterator[str]:
    """Load settings; tell what is said of them, with places in the example."""
    (folder / "rules.toml").write_text("", encoding="utf-8")
    (folder / "dan").mkdir()
    (folder / "dan" / "SOUL.md").write_text("You are Dan.", encoding="utf-8")
    (folder / "dan" / "SOLE.md").write_text("You are nobody.", encoding="utf-8")
    skill = folder / "skills" / "pdf"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(SKILL, encoding="utf-8")
    path = folder / "callboard.toml"
    top, joint, tables = f"\n{text}\n".partition("\n[")
    base = "\n" if "default_agent" in top else BASE
    path.write_text(f"{base}{top}{joint}{tables}{TABLES}", encoding="utf-8")
    try:
        settings = load_app(path, ENVIRONMENT)
    except SettingsError as error:
        told = [("error", each) for each in error.problems]
    else:
        told = [("warning", each) for each in settings.warnings]
    for word, each in told:
        place = f"{(each.line or 1) - 2}:{each.column}"
        line = f"{word} {place} {each.text} | {each.hint}"
        temporary = str(Path(tempfile.gettempdir()).resolve())
        line = line.replace(str(folder), "{folder}")
        yield line.replace(f"/ holds {temporary}", "/ holds {temporary}")


@pytest.mark.parametrize(
    ("settings", "told"),
    [pytest.param(*rest, id=title) for title, *rest in blocks()],
)
def test_wrong_settings_are_told_with_place_and_cure(
    tmp_path: Path, settings: str, told: str
) -> None:
    assert "\n".join(complaints(tmp_path, settings)) == told


def words(node: ast.expr, known: dict[str, list[ast.expr]]) -> Iterator[str]:
    """Give the fixed parts of a text, whatever it is made of."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Name(id=name):
            yield from chain(*(words(each, {}) for each in known.get(name, ())))
        case _:
            yield from chain(
                *(
                    words(x, known)
                    for x in ast.iter_child_nodes(node)
                    if isinstance(x, ast.expr)
                )
            )


def said(function: ast.AST) -> Iterator[str]:
    """Give what the complaints of a function say, in parts."""
    known: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            known.setdefault(node.targets[0].id, []).append(node.value)
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Complaint":
            given = [*node.args[1:], *(each.value for each in node.keywords)]
            yield from chain(*(words(each, known) for each in given))


def test_each_complaint_has_an_example() -> None:
    files = chain(*((ROOT / "tests" / each).rglob("*.py") for each in EXAMPLED))
    sources = "".join(each.read_text("utf-8") for each in files)
    shown = EXAMPLES.read_text("utf-8") + BROKEN.sub("", sources)
    missing: list[str] = []
    for path in sorted((ROOT / "connectors").rglob("*.py")):
        text = path.read_text("utf-8")
        if "Complaint(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                parts = (each.strip() for each in said(node))
                told = [x for x in parts if len(x) >= SAYS and not INSTALLED.search(x)]
                missing += [f"{path}: {x}" for x in told if x not in shown]
    assert not missing, "\n".join(missing)


def test_a_file_without_agents_and_connectors_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "callboard.toml"
    path.write_text("", encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load_app(path, {})
    assert [(each.text, each.hint) for each in caught.value.problems] == [
        ("there is no agent", "add a table [agents.anna]"),
        ("there is no connector", 'add [connectors.terminal] kind = "terminal"'),
    ]
