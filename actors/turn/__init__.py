"""One question until its final answer: prompt, model calls, tools.

A session has an agent start a turn, and hears how it goes. Begin with `turn`, the
actor, and `machine`, the rules that it follows; `round` is one model call, `tools`
carries out calls of tools, `request` keeps the request short enough.
"""

__all__ = [
    "files",
    "machine",
    "request",
    "round",
    "scheduled",
    "steering",
    "steps",
    "tools",
    "turn",
]
