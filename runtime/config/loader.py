"""Loads settings: one TOML file, with what it includes, into a Struct.

Generic: the caller brings the Struct, the environment for secrets and the checks
that need to see several settings together. Either everything fits, or all that
does not is told at once, each with file, line, column and what to do.

The steps: `config_tree` reads text, `config_toml` knows positions, `config_shape`
holds the tree against the Struct, `config_words` finds the words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from msgspec import inspect as shapes

from runtime.config.messages import close_to, dotted
from runtime.config.positions import Path as Way
from runtime.config.shape import Fit, Retired, Start
from runtime.config.tree import INCLUDE, FileReader, Node, Origin, override, variables
from runtime.errors import SettingsError, SettingsListError
from runtime.secret import Secret

Config = TypeVar("Config", bound=msgspec.Struct)

__all__ = [
    "INCLUDE",
    "Check",
    "Complaint",
    "LoadOptions",
    "Origin",
    "Prepare",
    "Settings",
    "close_to",
    "decode",
    "load",
]


@dataclass(frozen=True, slots=True)
class Complaint:
    """Something that a check across settings does not like."""

    way: Way
    """Where: keys of tables and, from 0, places in lists."""

    text: str
    hint: str = ""
    is_warning: bool = False
    """True: tell people, but go on."""


Check = Callable[[Config], Iterable[Complaint]]
"""Looks at settings whose shape is right; names what does not go together."""

Prepare = Callable[["Node"], "Node"]
"""Adds to a tree what stands elsewhere; raises `SettingsError` if it cannot."""


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How settings are read; all usual if nothing is said."""

    start: Start = Path
    """Gives where relative paths of written things start, by the folder of the file
    that names them; usually that folder itself."""

    overrides: tuple[Node, ...] = ()
    """Trees that are laid over the file, one after the other."""

    needs_secrets: bool = True
    """Whether a secret whose source is not there is a mistake. If not, an `UnsetSecret`
    stands for it; one that is there must be right in any case."""

    retired: Retired = field(default_factory=dict[str, Mapping[str, str]])
    """Keys that tables once had, and why they are gone: no mistake, but told."""

    instead: Mapping[Path, str] = field(default_factory=dict[Path, str])
    """By resolved path, what is read instead of a file's own text: a change that is
    checked before it is written."""


USUAL = LoadOptions()


@dataclass(frozen=True, slots=True)
class Settings(Generic[Config]):
    """Settings that fit, and where they came from."""

    value: Config
    origins: Mapping[Way, Origin]
    """Where each written setting stands; what is missing here is a default."""

    secrets: tuple[Secret, ...]
    """All secrets in use, for the logs to keep out."""

    warnings: tuple[SettingsError, ...]
    """What people should be told though it works."""

    files: tuple[Path, ...]
    """The file and all it includes, in the order they were read."""

    secret_files: tuple[Path, ...] = ()
    """Where secrets were read from; as private as the settings."""

    unset: tuple[SettingsError, ...] = ()
    """Secrets that are not there; see `LoadOptions.needs_secrets`."""


def load(
    path: Path,
    kind: type[Config],
    *,
    environment: Mapping[str, str],
    prepare: Prepare | None = None,
    check: Check[Config] | None = None,
    options: LoadOptions = USUAL,
) -> Settings[Config]:
    """Read a settings file, and the secrets that it names.

    Args:
        path: the file; errors call it as it is given here.
        kind: what it must say; with `forbid_unknown_fields`, as everything here.
        environment: where `{ env = "…" }` looks, usually `os.environ`.
        prepare: changes the whole tree before it is held against `kind`.
        check: called when every single setting fits.

    Raises:
        SettingsError: something is wrong; its `problems` tell each.
    """
    reader = FileReader(options.instead)
    top = reader.read(path)
    refuse(reader.errors)
    given = options.overrides
    taken = {name for tree in (top, *given) for name in variables(tree)}
    for each in given:
        if each.value.file not in taken:
            top = override(top, each)
    if prepare is not None:
        top = prepare(top)
    settings = decode(top, kind, environment=environment, check=check, options=options)
    return Settings(
        value=settings.value,
        origins=settings.origins,
        secrets=settings.secrets,
        warnings=settings.warnings,
        files=tuple(reader.files),
        secret_files=settings.secret_files,
        unset=settings.unset,
    )


@cache
def described(kind: type) -> shapes.Type:
    """Describe what a file must say; each file says it of a class of the program."""
    return shapes.type_info(kind)


def decode(
    top: Node,
    kind: type[Config],
    *,
    environment: Mapping[str, str],
    check: Check[Config] | None = None,
    options: LoadOptions = USUAL,
) -> Settings[Config]:
    """Turn a tree into settings; reads no file but those that hold secrets.

    Raises:
        SettingsError: as `load`.
    """
    file, needs_secrets = top.value.file, options.needs_secrets
    fit = Fit(environment, options.start, file, needs_secrets, options.retired)
    plain = fit.value(top, described(kind), ())
    refuse(fit.errors)
    try:
        value = msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        # Only a Struct's own `__post_init__` can still refuse here.
        raise SettingsError(str(error), file=top.value.file) from error
    errors, warnings = sort_out(() if check is None else check(value), fit, top)
    refuse(errors)
    return Settings(
        value,
        fit.origins,
        tuple(fit.secrets),
        tuple(warnings),
        (),
        tuple(fit.secret_files),
        tuple(fit.unset),
    )


def sort_out(
    complaints: Iterable[Complaint], fit: Fit, top: Node
) -> tuple[list[SettingsError], list[SettingsError]]:
    """Give complaints their places; split into errors and warnings."""
    errors: list[SettingsError] = []
    warnings = list(fit.warnings)
    told: set[tuple[Origin, str]] = set()
    for complaint in complaints:
        origin = nearest(complaint.way, fit.origins, top.value)
        # Why: an inherited setting is met once for every heir.
        if (origin, complaint.text) in told:
            continue
        told.add((origin, complaint.text))
        name = dotted(complaint.way)
        text = f"{name}: {complaint.text}" if name else complaint.text
        found = origin.error(text, complaint.hint)
        (warnings if complaint.is_warning else errors).append(found)
    return errors, warnings


def nearest(way: Way, origins: Mapping[Way, Origin], top: Origin) -> Origin:
    """Find where a setting stands or, for a default, the table it would be in."""
    while way not in origins and way:
        way = way[:-1]
    return origins.get(way, top)


def refuse(errors: list[SettingsError]) -> None:
    """Raise what was found, if anything was; in the order of the files and lines.

    Raises:
        SettingsError: the only one, or a `SettingsListError` with all of them.
    """
    files = list(dict.fromkeys(error.file for error in errors))
    found = sorted(
        errors, key=lambda error: (files.index(error.file), error.line, error.column)
    )
    if len(found) == 1:
        raise found[0]
    if found:
        raise SettingsListError(tuple(found))
