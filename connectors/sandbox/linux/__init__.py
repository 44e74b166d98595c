"""The protections that Linux has: bubblewrap, Landlock, seccomp.

The sandbox chooses among them. Begin with `bwrap`, the strongest; `landlock` needs no
program, `seccomp` forbids system calls, and `syscalls` has their numbers.
"""

__all__ = [
    "bwrap",
    "landlock",
    "seccomp",
    "syscalls",
]
