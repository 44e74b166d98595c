"""Slash commands: what people ask of the runtime instead of an agent.

A session parses a message (`messages/commands.py`) and has `dispatch` answer a command
without a model. Begin with `registry`, which lists every command; the other modules
answer them, subject by subject.
"""

__all__ = [
    "context",
    "dispatch",
    "memory",
    "registry",
]
