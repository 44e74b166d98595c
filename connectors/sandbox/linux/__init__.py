"""The protections that Linux has: bubblewrap, Landlock, seccomp.

The sandbox chooses among them. The strongest, bubblewrap, is a program that
`connectors/sandbox/orders.py` calls; `landlock` needs none, and `seccomp` forbids
system calls by their numbers.
"""

__all__ = ["landlock", "seccomp"]
