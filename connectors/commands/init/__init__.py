"""The command `callboard init`: settings to begin with, by a few questions.

Loaded by the command line, and by `callboard agents add`. Begin with `main`;
`questions` asks, `choices` holds what was chosen, `text` writes the file, `trial` asks
the model one small question.
"""

__all__ = ["choices", "main", "text"]
