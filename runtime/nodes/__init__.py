"""Several nodes on one database server: which node owns what, and how that changes.

Pure: decisions from rows that were read, and the statements of the transactions that
carry them out. There are leases for parts of all chats, for connectors that call their
platform, and for all the rest of the company. Proved by `tests/nodes_simulation` on a
model of the server, and the model by the server itself. `runtime/postgresql/nodes.py`
carries the plans out.
Begin with `rows.py`; `membership.py` decides, `statements.py` is the SQL, `hints.py`
what nodes tell each other.
"""

__all__ = [
    "hints",
    "membership",
    "rows",
    "statements",
]
