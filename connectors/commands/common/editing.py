"""Changes agents in a settings file, for `callboard agents`.

`connectors/settings/editing.py` keeps the comments, and writes no mistakes.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection
from pathlib import Path

import click

from connectors.chat.terminal.transport import short_name, socket_beside
from connectors.commands import find_settings, shipped_settings
from connectors.commands.common.output import say
from connectors.commands.init.choices import (
    TEMPLATES,
    ChoiceError,
    persona_text,
    read_agent,
    read_one,
)
from connectors.commands.init.main import TEMPLATE_FOLDER, make_folders, undo
from connectors.config.app import AppConfig
from connectors.settings.editing import EditedSettings, assign, read_value, table_in
from connectors.settings.load import load_app
from runtime.config.loader import Settings
from runtime.errors import SettingsError


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


def opened(path: Path) -> EditedSettings:
    """Begin to change a settings file.

    Raises:
        click.ClickException: it is no TOML.
    """
    try:
        return EditedSettings(path)
    except SettingsError as error:
        raise click.ClickException(str(error)) from error


def saved(edited: EditedSettings) -> Settings[AppConfig]:
    """Check the new settings, and write them.

    Raises:
        click.ClickException: they would be wrong, or the file was changed meanwhile;
            nothing was written.
    """
    try:
        return edited.save()
    except SettingsError as error:
        lines = [
            f"{each}\n  hint: {each.hint}" if each.hint else str(each)
            for each in error.problems
        ]
        told = "\n".join(lines)
        raise click.ClickException(f"{told}\nNothing was written.") from error


def tell_taken_over(settings: Settings[AppConfig], option: str, next_: str) -> None:
    """Say what becomes of a change, and what to do next.

    Args:
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
    edited = opened(path)
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
        settings = saved(edited)
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
    edited = opened(path)
    known = load_app(path, os.environ, needs_secrets=False).value
    refuse_elsewhere(edited, known.agents, agent)
    for key, value in given.items():
        assign(edited.agents()[agent], key, value)
    settings = saved(edited)
    told = f"Changed {', '.join(given)} of {agent} in {path}."
    say(told, id=agent, file=str(path), changed=list(given))
    tell_taken_over(settings, option_of(config), f"chat --agent {agent}")


def remove_agent(config: Path | None, agent: str, known: AppConfig) -> None:
    """Take an agent out of the settings, and out of what others may hand to it.

    Raises:
        click.ClickException: the rest would be wrong; nothing was written.
    """
    path = find_settings(config, Path.cwd()).path
    edited = opened(path)
    refuse_elsewhere(edited, known.agents, agent)
    edited.drop_agent(agent)
    for name, other in known.agents.items():
        if name != agent and agent in other.delegates:
            refuse_elsewhere(edited, known.agents, name)
            edited.delegate(name, agent, is_wanted=False)
            say(f"{name} hands it no more work.")
    settings = saved(edited)
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
