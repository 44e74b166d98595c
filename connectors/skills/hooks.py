"""The programs of skills that may have messages for themselves.

A skill names its program in the head of its SKILL.md, as `interceptor: python3 x.py` or
as a list, at the top or in `metadata`. It is run as a hook is, in the skill's folder,
which it may read; and it is asked only about what agents with that skill hear. To run
it is to run a program that came with a text, so none is run for a skill that the
operator has not listed in `skills.interceptors`.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from actors.rules.prompt import tools as tool_names
from actors.rules.prompt.skills import SKILL_FILE
from connectors.config.hooks import HookConfig
from connectors.skills.folder import SkillFolder, read_folders
from runtime.errors import SettingsError

if TYPE_CHECKING:
    from connectors.config.app import AppConfig

KEY = "interceptor"

PREFIX = "skill."
"""Before the skill's name in its hook's; no hook of the settings has a dot."""


def interceptors_of(
    config: AppConfig,
) -> tuple[dict[str, HookConfig], list[SettingsError]]:
    """Read the programs of those skills that may have messages for themselves.

    Returns:
        Hooks by name; and what is wrong with others.
    """
    skills = read_folders(config.skills.folders, config.skills.max_body_chars).skills
    found: dict[str, HookConfig] = {}
    problems: list[SettingsError] = []
    for name, folder in skills.items():
        if not fits_any(config.skills.interceptors, name):
            continue
        agents = agents_with(name, config)
        try:
            command = command_of(folder)
        except SettingsError as error:
            problems.append(error)
            continue
        if command and agents:
            found[PREFIX + name] = HookConfig(
                events=("message_heard",),
                command=command,
                agents=agents,
                folder=folder.path,
            )
    return found, problems


def agents_with(skill: str, config: AppConfig) -> tuple[str, ...]:
    """Name the agents of the settings that have a skill."""
    return tuple(
        name for name, agent in config.agents.items() if fits_any(agent.skills, skill)
    )


def fits_any(patterns: tuple[str, ...], name: str) -> bool:
    """Tell whether one of these patterns fits a skill."""
    return any(tool_names.fits(pattern, name) for pattern in patterns)


def command_of(folder: SkillFolder) -> tuple[str, ...]:
    """Give a skill's program; nothing: it has none.

    Raises:
        SettingsError: what stands there is no command.
    """
    metadata = folder.head.get("metadata")
    inner = metadata.get(KEY) if isinstance(metadata, dict) else None
    given = folder.head.get(KEY, inner)
    if given is None:
        return ()
    try:
        parts = shlex.split(given) if isinstance(given, str) else given
    except ValueError:
        parts = []
    found = [x for x in parts if isinstance(x, str) and x]
    if not isinstance(parts, list) or not found or len(found) < len(parts):
        hint = f"for example: {KEY}: python3 gate.py"
        file = str(folder.path / SKILL_FILE)
        raise SettingsError(f"{KEY!r} is no command", file=file, hint=hint)
    return tuple(found)


def with_interceptors(
    config: AppConfig,
) -> tuple[dict[str, HookConfig], list[SettingsError]]:
    """Give all hooks: those of the settings, then those of skills."""
    own, problems = interceptors_of(config)
    return {**config.hooks, **own}, problems
