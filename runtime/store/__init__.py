"""Durable storage as the kernel asks for it, whatever engine keeps the rows.

Actors commit and read through `port.py` (the `Store`), whose shapes are in `rows.py`
and `facts.py`. Operators read and change rows from outside through `database.py`.
Begin with `rows.py` and `port.py`; `in_memory.py` is the engine for tests.
"""

__all__ = [
    "copying",
    "database",
    "facts",
    "in_memory",
    "jobs",
    "port",
    "rows",
    "text",
    "threads",
    "vectors",
]
