"""Hooks: programs and Python functions that are asked before something happens.

The app makes them from the settings and runs them under `tree`. Begin with `hook` (one
hook with its limits, and what is asked and answered), then `runner`, which runs its
code, a program or a function.
"""

__all__ = ["hook", "runner", "tree"]
