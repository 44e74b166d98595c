"""Settings of inline directives."""

from __future__ import annotations

from typing import Literal

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

UNLESS_TOLD: tuple[MarkerFamily, ...] = (
    "memory",
    "delegation",
    "forget",
    "language",
    "schedule",
    "project",
    "skill",
)
"""The families that people of any agent ask for. Each costs room in every prompt, and
small models begin to write what they are told of without need.
"""
