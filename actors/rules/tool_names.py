"""What a server's tools are called here; pure.

Providers take letters, digits, `_` and `-`, at most 64 of them, and every name once.
Servers call their tools what they like. A name that fits is `<prefix>__<name>`; any
other ends with `__` and a part of its digest, so that it stays the same whatever
other tools there are, and no tool can take the place of another server's.
"""

from __future__ import annotations

import hashlib
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

JOINT = "__"
LONGEST_NAME = 64
LONGEST_PREFIX = 32
DIGEST = 10
"""Hexadecimal digits."""

UNFIT = re.compile(r"[^A-Za-z0-9_-]+")
PREFIX = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9-])?")

SERVER = "mcp:"
"""With this an agent's tool of a server begins: `mcp:files`, `mcp:files/read_*`."""


def is_prefix(text: str) -> bool:
    """Tell whether tools' names may begin with this.

    No `__` and no `_` at the end: the first `__` of a name ends its prefix.
    """
    fits = len(text) <= LONGEST_PREFIX and PREFIX.fullmatch(text) is not None
    return fits and JOINT not in text


def offered_name(prefix: str, name: str) -> str:
    """Say what a server's tool is called.

    Args:
        prefix: of the server; see `is_prefix`.
        name: what the server calls it; anything.
    """
    plain = f"{prefix}{JOINT}{name}"
    fits = UNFIT.search(name) is None and JOINT not in name and name != ""
    if fits and len(plain) <= LONGEST_NAME:
        return plain
    raw = name.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(raw).hexdigest()[:DIGEST]
    room = LONGEST_NAME - len(prefix) - 2 * len(JOINT) - DIGEST
    body = UNFIT.sub("_", name).replace(JOINT, "_")[:room].strip("_")
    return f"{prefix}{JOINT}{body or 'tool'}{JOINT}{digest}"


def server_of(wanted: str) -> str:
    """Name the server in an agent's `mcp:…`; empty if it is none."""
    if not wanted.startswith(SERVER):
        return ""
    return wanted.removeprefix(SERVER).partition("/")[0]


def is_wanted(wanted: Iterable[str], server: str, name: str) -> bool:
    """Tell whether an agent has a server's tool.

    Args:
        wanted: the agent's list: `mcp:<server>`, or `mcp:<server>/<pattern>`.
        server: its name in the settings.
        name: what the server calls the tool.
    """
    for each in wanted:
        if server_of(each) == server:
            _, _, pattern = each.partition("/")
            if fits(pattern or "*", name):
                return True
    return False


def fits(pattern: str, name: str) -> bool:
    """Tell whether a name fits a pattern in which `*` and `?` stand for anything."""
    return fnmatchcase(name, pattern)
