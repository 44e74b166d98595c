"""Several nodes on one database server: which node owns what, and how that changes.

Pure: decisions from rows that were read, and the statements of the transactions that
carry them out. Not used by `callboard serve` yet, which runs one process; proved by
`tests/nodes_simulation` on a model of the server, and the model by the server itself.
Begin with `rows.py`; `membership.py` decides, `statements.py` is the SQL.
"""

__all__ = []
