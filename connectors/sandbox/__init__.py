"""Runs programs that agents or settings name, with few rights.

Tools, tool servers, hooks and command line models start programs with `runner`, which
also tries which protection works on this machine. Begin with `plan` (what a program may
do); `linux` has the protections, `child` what runs in the confined process.
"""

__all__ = ["orders", "plan", "runner"]
