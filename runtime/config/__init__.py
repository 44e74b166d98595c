"""Reads settings from TOML files: includes, positions of mistakes, shapes.

The edges load their settings with `loader`, which also holds them against the Structs
that say what may be set. Begin there; `tree` merges tables, `messages` says what is
wrong and where.
"""

__all__ = ["loader", "messages", "tree"]
