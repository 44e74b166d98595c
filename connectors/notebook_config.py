"""The settings of what agents write down for the operator, and read of projects.

Only shapes and defaults, as in `config.py`, which takes these in.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


class NotebookConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What agents write down for whoever runs them."""

    bug_file: str = ""
    """The file of bugs that they report. Relative to the current directory, as the
    database is; empty: `bugs.md` beside that."""


class ProjectsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What people work on, as the operator describes it."""

    folder: Path | None = None
    """Holds `<name>.md`, or `<name>/PROJECT.md`, for each; unset: there are none."""
