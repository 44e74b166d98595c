"""Settings of hooks: the operator's own code beside the way of a message.

Only shapes, bounds and defaults; `app.py` puts them together.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from actors.config.values import Count
from actors.hooks.chain import Event
from connectors.config.mcp import VariableName
from runtime.config.shape import CommandText
from runtime.secret import OpenText


class HookConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A hook: a program (`command`), or Python that is installed (`python`)."""

    events: Annotated[tuple[Event, ...], Meta(min_length=1)]
    """What it is asked about, or told of."""

    command: tuple[CommandText, ...] = ()
    """Program to start, and what follows its name; no shell reads it. It speaks JSON
    lines over standard input and output. A file that it names is looked for beside the
    settings, and may be read."""

    python: str = ""
    """Name of an entry point of an installed package, in the group `callboard.hooks`.
    It runs in this process, and may do whatever this process may."""

    order: Annotated[int, Meta(ge=-1_000, le=1_000)] = 0
    """Which is asked first: the lowest; of equal ones, by name."""

    connectors: tuple[str, ...] = ()
    """Only words from and to these connectors; empty: all."""

    agents: tuple[str, ...] = ()
    """Only what these agents say; empty: all of them. A message that came in is no
    agent's yet."""

    timeout: Annotated[float, Meta(gt=0, le=60)] = 5.0
    """Seconds it may take to answer."""

    on_failure: Literal["open", "closed"] = "open"
    """What becomes of words of which it says nothing in time, or nothing sensible: they
    pass as they are (`open`), or are held back (`closed`)."""

    max_calls: Annotated[int, Meta(ge=1, le=64)] = 8
    """Questions at once; up to a hundred times as many wait, the rest counts as
    failed. Three quarters may be about one person's messages."""

    folder: Path | None = None
    """Current folder of the program, which it may read; unset: one of its own in the
    agents' workspace, which it may write to."""

    readable: tuple[Path, ...] = ()
    """Files and folders it may read, beside what programs need anyway."""

    writable: tuple[Path, ...] = ()
    """Files and folders it may read and change."""

    network: Literal["none", "tcp"] = "none"
    """Whether the program may connect to other machines."""

    env: dict[VariableName, OpenText] = field(default_factory=dict[str, OpenText])
    """Environment variables for the program, beside the few that every program gets;
    secrets as `{ env = "NAME" }`."""

    memory_mb: Count = 1_024
    """Most memory of the program, in MB."""

    restart_first: Annotated[float, Meta(ge=0, le=3_600)] = 1.0
    """Seconds before it is started again; doubled for each further time in a row, up to
    a minute."""

    disabled: bool = False
    """Whether it is left out."""
