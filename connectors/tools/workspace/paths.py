"""Which paths a model may name in its workspace.

Pure. Only what a path says; what the names stand for on the disk (links, special
files) is found out in `workspace.py`, step by step.
"""

from __future__ import annotations

MAX_PATH = 1_024
"""Characters."""

MAX_NAME_BYTES = 255
"""What file systems take."""

MAX_DEPTH = 16
"""Folders inside each other."""

OWN = ".callboard-"
"""What files begin with that are only half written."""


class WorkspaceError(Exception):
    """It cannot be done in the workspace; the text tells the model why."""


def read_path(path: str) -> tuple[str, ...]:
    """Part a path into names; none at all is the workspace itself.

    Raises:
        WorkspaceError: it leads, or could lead, out of the workspace.
    """
    if len(path) > MAX_PATH:
        raise WorkspaceError(f"the path is above {MAX_PATH} characters")
    if path.startswith(("/", "~")):
        raise refused(path, "paths start in your own folder, as in notes/today.md")
    if "\\" in path:
        raise refused(path, "write / between folders")
    names = tuple(name for name in path.split("/") if name not in {"", "."})
    if len(names) > MAX_DEPTH:
        raise refused(path, f"it is above {MAX_DEPTH} folders deep")
    for name in names:
        why = why_bad_name(name)
        if why:
            raise refused(path, why)
    return names


def why_bad_name(name: str) -> str:
    """Say what is wrong with one name; empty: nothing."""
    if name == "..":
        return "it leads out of your folder"
    if not name.isprintable():
        return "it holds invisible characters"
    try:
        size = len(name.encode("utf-8"))
    except UnicodeEncodeError:
        return "it holds half a character"
    if size > MAX_NAME_BYTES:
        return f"a name in it is above {MAX_NAME_BYTES} bytes"
    if name.startswith(OWN):
        return f"names that begin with {OWN} are taken"
    return ""


def shown(path: str) -> str:
    """Write a path so that it can stand in a text."""
    text = path.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else "?" for c in text)[:200]


def refused(path: str, why: str) -> WorkspaceError:
    """Make the error."""
    return WorkspaceError(f"{shown(path)!r} is refused: {why}")
