"""Parts that several commands share.

`database.py` opens the database that a command line names, `editing.py` changes the
settings file, `output.py` has options and prints tables and JSON, `running.py` runs a
company until it is stopped. Begin with `database.py`.
"""

__all__ = ["database", "editing", "output", "running", "staff"]
