"""What the engines that speak SQL share: their statements, and the store over them.

The statements are SQLite's and run on a connection as apsw's is (`read.Db`), with
nothing in between. PostgreSQL's connection takes the same ones and translates them
(`runtime/postgresql/session.py`). `store.py` is the store of a running program,
`database.py` the same rows from outside, for operators.
"""

__all__ = [
    "database",
    "facts",
    "read",
    "store",
    "vectors",
    "write",
]
