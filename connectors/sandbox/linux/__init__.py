"""The protections that Linux has: bubblewrap, Landlock, seccomp.

The sandbox chooses among them. Begin with `bwrap`, the strongest; `landlock` needs no
program, and `seccomp` forbids system calls by their numbers.
"""

__all__ = ["landlock", "seccomp"]
