"""The commands of `callboard`, a module or folder each; finds the settings file."""

from __future__ import annotations

import errno
import io
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from connectors.config.shipped import shipped_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import ReadableBuffer

    from runtime.errors import SettingsError

__all__ = [
    "FoundSettings",
    "NamedOutput",
    "config_option",
    "describe_error",
    "find_settings",
    "given_settings",
    "innermost",
    "let_go_of_output",
    "name_output",
    "nearer",
    "shipped_settings",
    "tell_problems",
]

ENVIRONMENT_NAME = "CALLBOARD_CONFIG"
GIVEN = "callboard.given"
"""Where click keeps what `--set` said."""

USUAL_NAME = "callboard.toml"
OFFLINE = "offline.toml"


def _keep_given(
    context: click.Context, _: click.Parameter, value: tuple[str, ...]
) -> None:
    context.meta[GIVEN] = value


def given_settings() -> tuple[str, ...]:
    """Give the settings that the command line has, `log.level=debug` each."""
    context = click.get_current_context(silent=True)
    return () if context is None else tuple(context.meta.get(GIVEN, ()))


_set_option = click.option(
    "--set",
    metavar="KEY=VALUE",
    multiple=True,
    expose_value=False,
    callback=_keep_given,
    help="A setting that counts instead of the file's, as log.level=debug.",
)

_config_option = click.option(
    "--config",
    "-c",
    "config",
    metavar="FILE",
    type=click.Path(path_type=Path),
    envvar=ENVIRONMENT_NAME,
    show_envvar=True,
    help=f"The settings file. Without it: {USUAL_NAME} in the current directory.",
)


def config_option(command: Callable[..., object]) -> Callable[..., object]:
    """Give a command the parameter `config: Path | None`; see `find_settings`.

    Gives it `--set`, too, which `given_settings` reads.
    """
    return _config_option(_set_option(command))


OUTPUT_NAME = "standard output"


class NamedOutput(io.FileIO):
    """An open descriptor whose errors name standard output.

    Why: the system names no file when a write to an open one fails, so that a full
    disk behind `> file` would look like one that the program itself needs.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)

    def write(self, data: ReadableBuffer, /) -> int:
        """Write as much as is taken.

        Raises:
            OSError: nothing is taken; its file is `OUTPUT_NAME`.
        """
        try:
            return super().write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, OUTPUT_NAME) from error


def name_output() -> None:
    """Have errors of standard output name it, from here on; call it at the start."""
    before = sys.stdout
    if isinstance(before, io.TextIOWrapper):  # none, if it was closed before the start
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(NamedOutput(before.fileno())),
            encoding=before.encoding,
            errors=before.errors,
            line_buffering=before.line_buffering or before.write_through,
        )


CURES = {
    errno.EACCES: "change its owner or permissions, or run this as its owner",
    errno.ENOSPC: "make room on that disk",
    errno.EROFS: "name a place that can be written",
}
"""What to do about errors of the machine that have one cure."""


def describe_error(error: OSError) -> str:
    """Say what the machine refused, of which file, and what to do about it."""
    if not error.strerror:
        return str(error)
    if error.filename == OUTPUT_NAME:
        return (
            f"{OUTPUT_NAME} cannot be written: {error.strerror}; direct it to a file or"
            " /dev/null that can"
        )
    place = "" if error.filename is None else f"{error.filename}: "
    cure = CURES.get(error.errno or 0)
    return f"{place}{error.strerror}" + (f"; {cure}" if cure else "")


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
        may_fall_back: True takes the shipped offline settings if there are none.

    Raises:
        click.UsageError: no file is named, and none is where it usually is.
        SettingsError: a file is named that is not there.
    """
    if given is not None:
        if _is_missing(given):
            # Why here: `callboard --version` needs none of it.
            from runtime.errors import SettingsError  # noqa: PLC0415

            text = "cannot be read: No such file or directory"
            raise SettingsError(text, file=str(given), hint=_near_settings(given))
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


def _is_missing(path: Path) -> bool:
    """Whether nothing has this path; what may not be looked at is not missing."""
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _near_settings(path: Path) -> str:
    """Write the hint for a settings file that is not there: which files are near."""
    from runtime.config.messages import close_to  # noqa: PLC0415  as above

    try:
        known = [each.name for each in path.parent.iterdir() if each.suffix == ".toml"]
    except OSError:
        return f"there is no folder {path.parent} that can be read"
    see = f"ls {path.parent}/*.toml"
    return close_to(path.name, known, see) if known else "`callboard init` makes one"


def nearer(path: Path, folder: Path) -> Path:
    """Write a path from the current directory, if it lies below it."""
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def tell_problems(error: SettingsError, kind: str = "") -> None:
    """Write each problem as `file:line:column: text`, as compilers do.

    Args:
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
    """Drop output that standard output cannot take, or that nobody reads any more.

    Why: Python would complain once more when it flushes at the end.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
