"""Runs other programs where they cannot reach what is not theirs."""
