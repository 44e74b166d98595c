"""Parts that several commands share.

`database.py` opens the database that a command line names, `editing.py` changes the
settings file, `options.py` has options, `output.py` prints tables and JSON,
`running.py` runs a company until it is stopped, `staff.py` reads and changes who works
here. Begin with `database.py`.
"""

__all__ = [
    "database",
    "editing",
    "options",
    "output",
    "running",
    "staff",
    "whole_backup",
]
