"""The settings' words for what an agent may ask for in its text."""

from __future__ import annotations

from typing import Literal, get_args

MarkerFamily = Literal[
    "memory",
    "state",
    "delegation",
    "forget",
    "language",
    "personality",
    "reward",
    "lesson",
    "schedule",
    "heartbeat",
    "project",
    "skill",
    "bug",
    "purge",
]
"""Marks that are allowed together; each is explained in `rules/tags.py`."""

UNLESS_TOLD: tuple[MarkerFamily, ...] = tuple(
    family for family in get_args(MarkerFamily) if family != "purge"
)
"""All but what cannot be undone."""
