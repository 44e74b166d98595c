"""Runs programs that agents or settings name, with few rights.

Tools, tool servers, hooks and command line models start programs with `runner`. Begin
with `plan` (what a program may do), then `choose` (which protection works on this
machine); `linux` has the protections, `child` what runs in the confined process.
"""

__all__ = ["choose", "orders", "plan", "runner", "territory"]
