"""Proves that no name changes which a database, a dashboard or a settings file holds.

Classes and functions may be renamed at will. Names that are written down elsewhere may
not: kinds of rows and journal events, metrics, and settings keys. `stored_names.txt`
lists them all. A new name is added to the list; one that vanishes breaks somebody's
data, dashboard or settings, so it needs a migration and a line in the CHANGELOG.

`python -m tests.house.test_stored_names` writes the list afresh.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_origin

import msgspec

from connectors.settings.load import settings_type
from tests.support.readme import ROOT

LIST = Path(__file__).with_name("stored_names.txt")
METRIC = "callboard_"
KIND = "kind"


def constants(package: str, sign: str) -> Iterator[tuple[ast.AST, str]]:
    """Give every text of a package, with the node that it belongs to.

    Args:
        package: the floor.
        sign: a regular expression; modules without it are not looked at, since it takes
            seconds to parse all.
    """
    for path in (ROOT / package).rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if re.search(sign, source) else ():
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.Constant) and isinstance(child.value, str):
                    yield node, child.value


def metrics() -> Iterator[str]:
    """Give every text of the product that is the name of a metric."""
    for package in ("runtime", "actors", "connectors"):
        for _, text in constants(package, rf"[\"']{METRIC}"):
            if text.startswith(METRIC) and text.isidentifier():
                yield f"metric {text}"


def kinds() -> Iterator[str]:
    """Give every kind that the domain writes into a row or an event."""
    for node, text in constants("actors", rf"\b{KIND}="):
        if isinstance(node, ast.keyword) and node.arg == KIND:
            yield f"kind {text}"


def keys(shape: object, place: str = "", depth: int = 12) -> Iterator[str]:
    """Give every settings key below a shape; `*` stands for a name of one's own."""
    is_map = get_origin(shape) is dict or "Mapping" in str(shape)[:40]
    if isinstance(shape, type) and issubclass(shape, msgspec.Struct):
        for field in msgspec.structs.fields(shape):
            yield f"setting {place}{field.encode_name}"
            yield from keys(field.type, f"{place}{field.encode_name}.", depth - 1)
        return
    for each in get_args(shape) if depth else ():
        yield from keys(each, f"{place}*." if is_map else place, depth - 1)


def stored_names() -> list[str]:
    """Give all names that are stored somewhere, each once, sorted."""
    return sorted({*metrics(), *kinds(), *keys(settings_type())})


def test_no_stored_name_vanishes_and_each_new_one_is_listed() -> None:
    listed = LIST.read_text(encoding="utf-8").splitlines()
    found = stored_names()
    assert not set(listed) - set(found), "renamed or gone: this breaks stored data"
    assert not set(found) - set(listed), f"add these to {LIST.name}"


def test_the_list_knows_the_three_kinds_of_names() -> None:
    listed = LIST.read_text(encoding="utf-8").splitlines()
    counted = {
        kind: sum(line.startswith(f"{kind} ") for line in listed)
        for kind in ("metric", "kind", "setting")
    }
    assert counted["setting"] > 500
    assert counted["metric"] > 100
    assert counted["kind"] > 20
    assert "setting agents.*.model" in listed
    assert "metric callboard_settings_reloads" in listed


if __name__ == "__main__":
    LIST.write_text("".join(f"{name}\n" for name in stored_names()), encoding="utf-8")
    sys.stdout.write(f"{len(stored_names())} names\n")
