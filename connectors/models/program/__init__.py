"""Models that are programs of the command line, such as Claude Code or Codex.

Made by `model` for `kind = "cli"`; each conversation has a folder, and the program runs
in the sandbox. Begin with `model`, which also writes the prompt; `output` reads the
program's answer, `folders` keeps the folders and says what the program may reach.
"""

__all__ = ["folders", "model"]
