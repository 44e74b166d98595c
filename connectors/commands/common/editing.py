"""Changes a settings file for a command: comments stay, mistakes are not written.

The new text is checked beside the old one, as the whole program would read it, and
takes its place in one step, so that a running company never reads half of it.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Collection, Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import cast

import click
import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array

from connectors.chat.terminal.transport import short_name, socket_beside
from connectors.commands import find_settings, shipped_settings
from connectors.commands.common.output import say
from connectors.commands.init.choices import (
    TEMPLATES,
    ChoiceError,
    read_agent,
    read_one,
)
from connectors.commands.init.main import TEMPLATE_FOLDER, make_folders, undo
from connectors.commands.init.text import persona_text
from connectors.config.app import AppConfig
from connectors.settings.load import load_app
from runtime.config.loader import Settings
from runtime.errors import SettingsError

PREFIX = ".callboard-edit-"
AGENTS = "agents"

TomlTable = MutableMapping[str, object]
"""A table of tomlkit, which keeps the comments in it."""


class EditedSettings:
    """A settings file that is being changed.

    Args:
        path: the file; a link is followed.

    Raises:
        click.ClickException: it is no TOML.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self._before = self.path.read_bytes()
        try:
            self.document = cast("TomlTable", tomlkit.parse(self._before))
        except (TOMLKitError, UnicodeDecodeError) as error:
            raise click.ClickException(f"{path} is no TOML: {error}") from error
        self._more = ""

    def agents(self) -> dict[str, TomlTable]:
        """Give the tables of agents that stand in this file, by name."""
        above = table_in(self.document, AGENTS)
        found = {name: table_in(above, name) for name in above or ()} if above else {}
        return {name: table for name, table in found.items() if table is not None}

    def add_agent(self, name: str, values: Mapping[str, object]) -> None:
        """Put a table behind all others."""
        table = tomlkit.table()
        for key, value in values.items():
            assign(cast("TomlTable", table), key, value)
        above = tomlkit.table(is_super_table=True)
        above.append(name, table)
        added = tomlkit.document()
        added.append(AGENTS, above)
        self._more = f"\n{tomlkit.dumps(added)}"

    def drop_agent(self, name: str) -> None:
        """Take an agent's table out."""
        above = table_in(self.document, AGENTS)
        if above is not None:
            del above[name]

    def delegate(self, above: str, name: str, *, is_wanted: bool) -> bool:
        """Let an agent hand work to another, or no more; False: it is so already."""
        known = self.agents()[above].setdefault("delegates", tomlkit.array())
        if not isinstance(known, Array):
            return False
        names = cast("list[str]", known)
        if (name in names) == is_wanted:
            return False
        if is_wanted:
            names.append(name)
        else:
            names.remove(name)
        return True

    def save(self) -> Settings[AppConfig]:
        """Check the new settings, and write them.

        Raises:
            click.ClickException: they would be wrong, or the file was changed
                meanwhile; nothing was written.
            OSError: they cannot be written.
        """
        text = tomlkit.dumps(self.document).rstrip("\n") + "\n" + self._more
        number, name = tempfile.mkstemp(
            ".toml", prefix=PREFIX, dir=self.path.parent, text=False
        )
        new = Path(name)
        try:
            with os.fdopen(number, "wb") as file:
                file.write(text.encode())
                file.flush()
                before = self.path.stat()
                with suppress(PermissionError):  # only root may give a file away
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
                os.fchmod(file.fileno(), before.st_mode & 0o777)
                os.fsync(file.fileno())
            checked = self._checked(new)
            if self.path.read_bytes() != self._before:
                raise click.ClickException(
                    f"{self.path} was changed meanwhile; nothing was written"
                )
            new.replace(self.path)
        finally:
            new.unlink(missing_ok=True)
        return checked

    def _checked(self, new: Path) -> Settings[AppConfig]:
        try:
            return load_app(new, os.environ, needs_secrets=False)
        except SettingsError as error:
            lines = [
                f"{each}\n  hint: {each.hint}" if each.hint else str(each)
                for each in error.problems
            ]
            told = "\n".join(lines).replace(str(new), str(self.path))
            raise click.ClickException(f"{told}\nNothing was written.") from error


def table_in(above: TomlTable, key: str) -> TomlTable | None:
    """Give a table that stands in another; None: there is none."""
    found = above.get(key)
    return cast("TomlTable", found) if isinstance(found, MutableMapping) else None


def assign(table: TomlTable, key: str, value: object) -> None:
    """Set a key of a table, or of one inside it: `heartbeat.every`; None removes it."""
    first, _, rest = key.partition(".")
    if rest:
        if value is None and first not in table:
            return
        if table_in(table, first) is None:
            # Why inline: in a table that is inline itself no other may stand.
            table[first] = tomlkit.inline_table()
        inner = table_in(table, first)
        if inner is not None:
            assign(inner, rest, value)
    elif value is None:
        table.pop(first, None)
    else:
        table[first] = tomlkit.item(value)


def read_assignments(given: tuple[str, ...]) -> dict[str, object]:
    """Read `KEY=VALUE` words; what is no TOML value is a text, and empty is None.

    Raises:
        click.BadParameter: one is none.
    """
    found: dict[str, object] = {}
    for each in given:
        key, equals, text = each.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"{each!r} is not KEY=VALUE")
        found[key.strip()] = read_value(text.strip())
    return found


def read_value(text: str) -> object:
    """Read one value."""
    if not text:
        return None
    with suppress(TOMLKitError):
        found: object = tomlkit.parse(f"x = {text}").unwrap()["x"]
        return found
    return text


def tell_taken_over(settings: Settings[AppConfig], option: str, next_: str) -> None:
    """Say what becomes of a change, and what to do next.

    Args:
        settings: as they were written.
        option: `--config FILE` for further commands, or nothing.
        next_: the command to try, without the program's name and that option.
    """
    if is_running(Path(settings.value.store.path)):
        say("The company that runs takes it over within three seconds.")
    say(f"Next: callboard {next_}{option}")


def is_running(database: Path) -> bool:
    """Whether a company with this database takes terminals, and so runs."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            with short_name(socket_beside(database)) as name:
                probe.connect(name)
        except OSError:
            return False
    return True


USUAL_TEMPLATE = "assistant"


def add_agent(
    config: Path | None,
    agent: str,
    values: tuple[str, ...],
    template: str | None,
    above: tuple[str, ...],
) -> None:
    """Write an agent into the settings; see `callboard agents add`.

    Raises:
        click.ClickException: something is wrong; nothing was written.
    """
    path = find_settings(config, Path.cwd()).path
    edited = EditedSettings(path)
    known = load_app(path, os.environ, needs_secrets=False).value
    name, template, given = new_agent(agent, values, template)
    if name in known.agents:
        raise click.BadParameter(f"there is an agent {name!r} already")
    if "model" not in {*given, *(table_in(edited.document, "agent_defaults") or ())}:
        given = {"model": next(iter(known.agents.values())).model, **given}
    edited.add_agent(name, given)
    for each in above:
        refuse_elsewhere(edited, known.agents, each)
        edited.delegate(each, name, is_wanted=True)
    made = write_texts(edited.path.parent, name, template)
    try:
        settings = edited.save()
    except BaseException:  # Ctrl-C, too, leaves nothing behind
        undo(made)
        raise
    model = settings.value.agents[name].model
    say(f"Added {name} to {path}, with model {model}.", id=name, file=str(path))
    if template:
        say(f"Who it is stands in {path.parent / 'agents' / name}: change it there.")
    if not above:
        say(f"People reach it as @{name}; --colleague-of lets others hand it work.")
    tell_taken_over(settings, option_of(config), f"chat --agent {name}")


def edit_agent(config: Path | None, agent: str, values: tuple[str, ...]) -> None:
    """Change settings of an agent; see `callboard agents edit`.

    Raises:
        click.ClickException: something is wrong; nothing was written.
    """
    path = find_settings(config, Path.cwd()).path
    given = read_assignments(values)
    edited = EditedSettings(path)
    known = load_app(path, os.environ, needs_secrets=False).value
    refuse_elsewhere(edited, known.agents, agent)
    for key, value in given.items():
        assign(edited.agents()[agent], key, value)
    settings = edited.save()
    told = f"Changed {', '.join(given)} of {agent} in {path}."
    say(told, id=agent, file=str(path), changed=list(given))
    tell_taken_over(settings, option_of(config), f"chat --agent {agent}")


def remove_agent(config: Path | None, agent: str, known: AppConfig) -> None:
    """Take an agent out of the settings, and out of what others may hand to it.

    Raises:
        click.ClickException: the rest would be wrong; nothing was written.
    """
    path = find_settings(config, Path.cwd()).path
    edited = EditedSettings(path)
    refuse_elsewhere(edited, known.agents, agent)
    edited.drop_agent(agent)
    for name, other in known.agents.items():
        if name != agent and agent in other.delegates:
            refuse_elsewhere(edited, known.agents, name)
            edited.delegate(name, agent, is_wanted=False)
            say(f"{name} hands it no more work.")
    settings = edited.save()
    told = f"Took {agent} out of {path}; its conversations and its folder stay."
    say(told, id=agent, file=str(path))
    tell_taken_over(settings, option_of(config), "agents list")


def new_agent(
    agent: str, values: tuple[str, ...], template: str | None
) -> tuple[str, str, dict[str, object]]:
    """Read what `add` was given: name, template (empty: none) and settings.

    Raises:
        click.BadParameter: something of it is wrong.
    """
    given = read_assignments(values)
    try:
        name = read_agent(agent)
        if template is None and not {"persona", "prompt"} & given.keys():
            template = USUAL_TEMPLATE
        template = read_one(template, TEMPLATES) if template else ""
    except ChoiceError as error:
        raise click.BadParameter(str(error)) from error
    if template:
        given["persona"] = f"agents/{name}"
    return name, template, given


def refuse_elsewhere(
    edited: EditedSettings, known: Collection[str], agent: str
) -> None:
    """Check that an agent's table stands in a settings file.

    Raises:
        click.BadParameter: it does not.
    """
    if agent not in known:
        text = f"there is no agent {agent!r}; known: {', '.join(sorted(known))}"
        raise click.BadParameter(text)
    if agent not in edited.agents():
        text = f"{agent} stands in a file that {edited.path.name} includes"
        raise click.BadParameter(f"{text}: name that one with --config, or edit it")


def write_texts(folder: Path, name: str, template: str) -> list[Path]:
    """Write an agent's character, unless there is one; give what was made."""
    home = folder / "agents" / name
    if not template or any(home.glob("*.md")):
        return []
    made = make_folders(home)
    for file in sorted((shipped_settings() / TEMPLATE_FOLDER / template).glob("*.md")):
        text = persona_text(file.read_text(encoding="utf-8"), name)
        (home / file.name).write_text(text, encoding="utf-8")
        made.append(home / file.name)
    return made


def option_of(config: Path | None) -> str:
    """Give the option that names the settings, if they were named."""
    return "" if config is None else f" --config {config}"
