"""Models that are programs of the command line, such as Claude Code or Codex.

Made by `model` for `kind = "cli"`; each conversation has a folder, and the program runs
in the sandbox. Begin with `model`; `model` writes what it is told, `output` reads what
it answers.
"""

__all__ = ["folders", "model"]
