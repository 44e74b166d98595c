"""What `callboard` can be told to do, one module each; and where settings are found."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from connectors.shipped import shipped_settings

if TYPE_CHECKING:
    from runtime.errors import SettingsError

__all__ = [
    "FoundSettings",
    "config_option",
    "find_settings",
    "innermost",
    "let_go_of_output",
    "nearer",
    "shipped_settings",
    "tell_problems",
]

ENVIRONMENT_NAME = "CALLBOARD_CONFIG"
USUAL_NAME = "callboard.toml"
OFFLINE = "offline.toml"

config_option = click.option(
    "--config",
    "-c",
    "config",
    metavar="FILE",
    type=click.Path(path_type=Path),
    envvar=ENVIRONMENT_NAME,
    show_envvar=True,
    help=f"The settings file. Without it: {USUAL_NAME} in the current directory.",
)
"""Gives a command the parameter `config: Path | None`; pass it to `find_settings`."""


@dataclass(frozen=True)
class FoundSettings:
    """A settings file, and what people should be told about how it was found."""

    path: Path
    note: str = ""
    """One line for people; empty when they named the file themselves."""


def find_settings(
    given: Path | None, folder: Path, *, may_fall_back: bool = False
) -> FoundSettings:
    """Decide which settings file is meant.

    Args:
        given: from `--config` or the environment; None if neither says anything.
        folder: the current directory.
        may_fall_back: True takes the shipped offline settings if there are none.

    Raises:
        click.UsageError: no file is named, and none is where it usually is.
    """
    if given is not None:
        return FoundSettings(given)
    usual = folder / USUAL_NAME
    if usual.is_file():
        return FoundSettings(nearer(usual, folder))
    offline = nearer(shipped_settings() / OFFLINE, folder)
    if may_fall_back:
        note = f"No {USUAL_NAME} here; using the offline settings in {offline}."
        return FoundSettings(offline, note)
    raise click.UsageError(
        f"there are no settings: give --config FILE, set {ENVIRONMENT_NAME}, or make "
        f"{USUAL_NAME} here with `callboard init`. To try it without a key: "
        f"callboard chat --config {offline}"
    )


def nearer(path: Path, folder: Path) -> Path:
    """Write a path from the current directory, if it lies below it."""
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def tell_problems(error: SettingsError, kind: str = "") -> None:
    """Write each problem as `file:line:column: text`, as compilers do.

    Args:
        error: one problem, or several.
        kind: put before the text, such as `warning: `.
    """
    for problem in error.problems:
        place = str(problem).removesuffix(problem.text)
        click.echo(f"{place}{kind}{problem.text}", err=True)
        if problem.hint:
            click.echo(f"  hint: {problem.hint}", err=True)


def innermost(error: BaseException) -> BaseException:
    """Find what was raised first inside a group of errors."""
    while isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        error = group.exceptions[0]
    return error


def let_go_of_output() -> None:
    """Forget what standard output does not take, or nobody reads any more.

    Why: Python would complain once more when it flushes at the end.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
