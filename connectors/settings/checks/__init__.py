"""Checks of settings that a type alone cannot make, one file for each subject.

`load` and the reload run all of them and show what they complain about. Begin with the
file of your subject; platforms have their checks in their own folders.
"""

__all__ = ["access", "models", "schedule", "tools"]
