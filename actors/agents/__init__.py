"""The agents: those of the settings, and those that conductors make while it runs.

The actor in `agent` starts a turn for each question; the actor in `staff` knows who
works here and tells everybody else. Begin with `persona` (an agent's settings, looked
up) and `roster`; `hiring` and `hired` are the pure rules of making agents.
"""

__all__ = [
    "agent",
    "hired",
    "hiring",
    "messages",
    "persona",
    "roster",
    "rows",
    "staff",
]
