"""Reads settings from TOML files: includes, positions of mistakes, shapes.

The edges load their settings with `loader`. Begin there; `tree` merges tables, `shape`
lists what may be set, `messages` says what is wrong and where.
"""

__all__ = [
    "loader",
    "messages",
    "shape",
    "tree",
]
