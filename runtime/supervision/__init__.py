"""Supervisors: who starts, watches and restarts which actors.

The domain's tree is made of them. Begin with `supervisor` and `child` (what to start,
and how often to restart it); `keyed` starts actors by key, `watchdog` notices a loop
that is blocked.
"""

__all__ = [
    "child",
    "keyed",
    "restarts",
    "supervisor",
    "watchdog",
]
