"""Settings of inline directives."""

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
"""Families of directives that are allowed together; see
`actors/rules/markers/tags.py`.
"""

UNLESS_TOLD: tuple[MarkerFamily, ...] = tuple(
    family for family in get_args(MarkerFamily) if family != "purge"
)
"""All families except those that cannot be undone."""
