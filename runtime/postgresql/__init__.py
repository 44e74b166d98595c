"""The store on a PostgreSQL server; implements `runtime.store`.

The statements and most of the store are those of `runtime.sql`; `session.py` translates
them. `store.py` is the store of a running program: one thread writes, one reads.
`database.py` is the same database from outside, for operators. `server.py` connects
and translates errors, `migrations.py` has the tables, `nodes.py` who the
nodes of a company are, `hints.py` what they tell each other. It needs the extra
`postgresql`.
Only `connectors/app` and the command line's `connectors/commands/common/database.py`
and `nodes.py` import it.
"""

__all__ = [
    "database",
    "hints",
    "migrations",
    "nodes",
    "server",
    "store",
]
