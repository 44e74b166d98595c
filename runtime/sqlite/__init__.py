"""The store in one SQLite file; implements `runtime.store`.

The statements and most of the store are those of `runtime.sql`. `store.py` is the
store of a running program: one thread writes, one reads. `database.py` is the same file
from outside, for operators. `file.py` opens and locks it. Only `connectors/app` and the
command line's `connectors/commands/common/database.py` import it.
"""

__all__ = [
    "database",
    "file",
    "store",
]
