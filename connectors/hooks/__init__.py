"""Hooks as they run: one actor each, over a program or a Python function."""
