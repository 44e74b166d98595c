"""Hooks: programs and Python functions that are asked before something happens.

The app makes them from the settings and runs them under `tree`. Begin with `hook` (one
hook with its limits), then `program` and `function`, the two kinds; `messages` is what
is asked and answered.
"""

__all__ = ["function", "messages", "metrics", "runner", "tree"]
