"""How agents ask each other behind the scenes, in the middle of a turn.

Turns offer the tools of `tools`; each question goes to a `consultant`, and the actor in
`counter` says how often two agents may speak. Begin with `questions`, which is pure.
"""

__all__ = [
    "colleagues",
    "consultant",
    "counter",
    "questions",
    "tools",
]
