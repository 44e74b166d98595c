"""Which settings operators may change on the page, and the change itself.

What is written is taken over as any other change of the file is. Who may come in, which
programs run, what needs an approval, on whose behalf agents work and where keys are
sent is left to those who may write the files: a stolen browser session must not become
the machine.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

import msgspec

from connectors.admin.settings import (
    Origins,
    ProposedSetting,
    Way,
    differences,
    setting_rows,
)
from connectors.app.reload.rules import TABLE
from connectors.config.app import AppConfig
from connectors.settings.editing import EditedSettings, read_value
from connectors.settings.load import load_app
from connectors.settings.schema import explained
from runtime.config.messages import dotted, toml
from runtime.config.tree import Origin
from runtime.errors import MisuseError, SettingsError
from runtime.secret import OpenText, Secret

RESTART = "it waits for a restart: {why}"
RESERVED = (
    "who may come in, which programs run, what needs an approval, on whose behalf"
    " agents work and where keys are sent is changed in the file alone"
)
SECRET = "a secret is changed in its file alone"  # noqa: S105  it is none
BESIDE = "it is given beside the settings files, by {origin}"
NO_FILE = "this company was not started from a settings file"

KEYS = frozenset(
    {
        # Programs and files:
        *("arguments", "bug_file", "command", "folder", "model_flag", "path"),
        *("persona", "prices", "readable", "resume_flag", "script", "secrets"),
        *("servers_flag", "turns_flag", "variables", "writable"),
        # Where keys are sent:
        *("base_url", "extra_body", "headers", "kind"),
        # Rights, and on whose behalf an agent works unasked:
        *("autonomy", "chat", "delegated_tools", "in_group", "is_conductor"),
        *("is_direct", "on_behalf_of", "report_to", "roles", "sender", "thread"),
        "tool_permissions",
    }
)
"""Keys that are changed in the file alone, also in sections of which `TABLE` says that
they may be changed on the page."""

NAMED = frozenset({"agents", "models"})
"""Sections whose next key is a name that people chose."""

MOST_OPTIONS = 60
"""Names of models that are offered."""


class SettingsByHand:
    """Changes settings of a running company by hand; its calls block.

    Args:
        files: the settings file that it was started with, and what that includes.
        running: gives the settings in force.
        origins: says where each was written.
    """

    def __init__(
        self,
        files: tuple[Path, ...],
        running: Callable[[], AppConfig],
        origins: Callable[[], Origins],
    ) -> None:
        self._files = files
        self._running = running
        self._origins = origins

    def refusal(self, way: Way) -> str:
        """Say why a setting is not changed here; empty: it may be."""
        names = (str(way[0]), dotted(way[:2]))
        cold = [TABLE[each].cold for each in names if each in TABLE]
        if any(cold):
            return RESTART.format(why=next(filter(None, cold)))
        if is_reserved(way):
            return RESERVED
        if not self._files:
            return NO_FILE
        origin = self._origins().get(way)
        files = {str(each) for each in self._files}
        if isinstance(origin, Origin) and origin.file not in files:
            return BESIDE.format(origin=origin)
        return ""

    def propose(self, name: str, text: str | None) -> ProposedSetting:
        """Check a change.

        Args:
            text: what it is to be, as TOML has it; None: as it is.

        Raises:
            MisuseError: there is no such setting, or it is not changed here.
        """
        return self._proposed(name, text)[0]

    def write(self, name: str, text: str, mark: str) -> ProposedSetting:
        """Check a change once more, and write it.

        Args:
            text: what it is to be.
            mark: of the proposal that somebody agreed to.

        Raises:
            MisuseError: it is not changed here, or is wrong; nothing was written.
        """
        proposed, edited = self._proposed(name, text)
        if proposed.problem:
            raise MisuseError(proposed.problem)
        if edited is None or not proposed.lines:
            raise MisuseError(f"{name} is so already")
        if proposed.mark != mark:
            raise MisuseError(
                f"{proposed.file} was changed meanwhile; look at the difference again"
            )
        try:
            edited.save()
        except (SettingsError, OSError) as error:
            raise MisuseError(told(error)) from error
        return proposed

    def _proposed(
        self, name: str, text: str | None
    ) -> tuple[ProposedSetting, EditedSettings | None]:
        config = self._running()
        rows = {dotted(each.way): each for each in setting_rows(config, {})}
        if name not in rows:
            raise MisuseError(f"there is no setting {name!r}")
        way = rows[name].way
        about = explained([str(each) for each in way if isinstance(each, str)])
        if why := self.refusal(way):
            raise MisuseError(f"{name}: {why}")
        kind = about[0].type if about else ""
        if "env =" in kind or is_secret(config, way):
            raise MisuseError(f"{name}: {SECRET}")
        asked = (rows[name].text or "") if text is None else text.strip()
        proposed = ProposedSetting(
            name=name,
            words=about[0].words if about else "",
            type=kind,
            text=asked,
            options=options(config, way, kind),
        )
        if text is None:
            return proposed, None
        try:
            return self._checked(proposed, way, config)
        except (SettingsError, OSError) as error:
            return msgspec.structs.replace(proposed, problem=told(error)), None

    def _checked(
        self, proposed: ProposedSetting, way: Way, config: AppConfig
    ) -> tuple[ProposedSetting, EditedSettings]:
        value = read_value(proposed.text)
        if proposed.type.startswith("text") and not isinstance(value, str | None):
            value = proposed.text
        edited = self._file_of(way)
        edited.put(way, value)
        new = edited.check().value
        lines = tuple(edited.difference())
        # Why not the settings in force: those may have more from the command line.
        saved = self._saved(config)
        if any(is_reserved(x) or is_secret(new, x) for x in changed(saved, new)):
            raise MisuseError(f"{proposed.name}: {RESERVED}")  # a table brings it in
        effects = tuple(differences(shown(saved), shown(new)))
        if lines and not effects:
            text = "nothing would be different: another line says the same"
            raise SettingsError(text, file=str(edited.path))
        return (
            msgspec.structs.replace(
                proposed,
                file=str(edited.path),
                lines=lines,
                effects=effects,
                mark=hashlib.sha256(edited.before).hexdigest(),
            ),
            edited,
        )

    def _saved(self, otherwise: AppConfig) -> AppConfig:
        """Read what is saved now; if that has a mistake, take the settings in force."""
        try:
            return load_app(self._files[0], os.environ, needs_secrets=False).value
        except SettingsError:
            return otherwise

    def _file_of(self, way: Way) -> EditedSettings:
        """Find the file in which a setting stands, or its table would.

        What stands in the settings file itself counts more than what it includes, and
        of what it includes, what comes later.
        """
        whole = self._files[0]
        files = [EditedSettings(each, whole) for each in (whole, *self._files[:0:-1])]
        for length in range(len(way), 0, -1):
            for each in files:
                if each.has(way[:length]):
                    return each
        return files[0]


def is_reserved(way: Way) -> bool:
    """Whether a setting is changed in its file alone."""
    own = way[2:] if way[0] in NAMED else way[1:]
    return not TABLE[str(way[0])].on_page or not KEYS.isdisjoint(map(str, own))


def changed(before: AppConfig, after: AppConfig) -> set[Way]:
    """Give the settings that are not the same in both."""
    old, new = ({(x.way, x.text) for x in setting_rows(y, {})} for y in (before, after))
    return {way for way, _ in old ^ new}


def shown(config: AppConfig) -> dict[str, str]:
    """Write every setting as TOML has it, by its dotted name; secrets masked."""
    rows = setting_rows(config, {})
    return {dotted(each.way): each.text for each in rows if each.text is not None}


def told(error: SettingsError | OSError) -> str:
    """Say what is wrong, with what to do, each in a line."""
    if isinstance(error, OSError):
        return f"the file cannot be written: {error.strerror or error}"
    return "\n".join(
        f"{each} ({each.hint})" if each.hint else str(each) for each in error.problems
    )


def is_secret(config: AppConfig, way: Way) -> bool:
    """Whether what stands there now is a secret, or may be one."""
    found: object = config
    for part in way:
        if isinstance(found, msgspec.Struct):
            encoded = zip(
                found.__struct_encode_fields__, found.__struct_fields__, strict=True
            )
            own = dict(encoded).get(str(part))
            found = None if own is None else getattr(found, own)
        elif isinstance(found, Mapping):
            found = cast("Mapping[str | int, object]", found).get(part)
        elif isinstance(found, Sequence) and isinstance(part, int):
            found = cast("Sequence[object]", found)[part]
    return isinstance(found, Secret | OpenText)


def options(config: AppConfig, way: Way, kind: str) -> tuple[str, ...]:
    """Give what a setting may be, if that is a short list."""
    if kind == "true or false":
        return ("true", "false")
    if way[-1] == "model" and way[0] in {"agents", "agent_defaults"}:
        return tuple(map(toml, list(config.models)[:MOST_OPTIONS]))
    if way == ("default_agent",):
        return tuple(map(toml, list(config.agents)[:MOST_OPTIONS]))
    parts = kind.split(" or ")
    is_list = len(parts) > 1 and all(each.startswith('"') for each in parts)
    return tuple(parts) if is_list else ()
