"""Durable storage as the kernel asks for it, whatever engine keeps the rows.

Actors commit and read through `port.py` (the `Store`), whose shapes are in `rows.py`
and `facts.py`. Operators read and change rows from outside through `database.py`.
Begin with `rows.py` and `port.py`.
"""

__all__ = [
    "copying",
    "database",
    "facts",
    "jobs",
    "port",
    "rows",
    "text",
    "vectors",
]
