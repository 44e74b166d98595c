"""The command `callboard init`: settings to begin with, by a few questions.

Loaded by the command line, and by `callboard agents add`. Begin with `main`;
`questions` asks, also the model one small question; `choices` holds what was chosen and
writes the file.
"""

__all__ = ["choices", "main"]
