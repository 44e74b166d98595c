"""What runs in the confined process, before and beside the program itself.

Started by the sandbox as a program of its own, so it imports as little as it can. Begin
with `launcher`; `confine` gives up rights, `self_test` tells whether a protection
works.
"""

__all__ = [
    "confine",
]
