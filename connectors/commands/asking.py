"""Has the operator say yes before much is changed."""

from __future__ import annotations

import sys

import click

yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
"""Gives a command the parameter `yes: bool`; pass it to `is_wanted`."""


def is_wanted(question: str, *, yes: bool) -> bool:
    """Ask, unless that was answered on the command line.

    Raises:
        click.UsageError: nobody is there to answer.
    """
    if yes:
        return True
    click.echo(f"{question} [y/N] ", err=True, nl=False)
    # Python has None for a standard input that was closed before the start.
    answer = "" if sys.stdin is None else sys.stdin.readline()
    if not answer:
        click.echo(err=True)
        raise click.UsageError("nobody is there to say yes; give --yes")
    if answer.strip().lower() in {"y", "yes"}:
        return True
    click.echo("Nothing was changed.", err=True)
    return False
