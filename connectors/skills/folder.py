"""Reads folders of skills, by the AgentSkills specification; runs nothing in them.

A skill is a folder with a SKILL.md: a head with `name` (the folder's own), a
`description` and perhaps `license`, `compatibility`, `metadata` and `allowed-tools`;
then the instructions. Ours beside it: `triggers`, the words that call for it, at the
top of the head or in `metadata`, as a list or parted by commas.

Source: agentskills.io/specification.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from actors.rules.prompt.skills import SKILL_FILE, Skill
from actors.rules.text.cleaning import clean, one_line
from connectors.skills.bundle import LARGEST_FILE, files_of, read_bundled
from connectors.skills.front_matter import Tree, parse, split
from runtime.errors import SettingsError

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
LONGEST_NAME = 64
LONGEST_DESCRIPTION = 1_024
LONGEST_COMPATIBILITY = 500
MOST_SKILLS = 500
MOST_TRIGGERS = 50
LONGEST_TRIGGER = 60


@dataclass(frozen=True)
class SkillFolder:
    """A skill, and where it was found."""

    skill: Skill
    path: Path
    head: dict[str, Tree]
    """All that its head says."""


@dataclass(frozen=True)
class Found:
    """What the folders hold."""

    skills: dict[str, SkillFolder] = field(default_factory=dict[str, SkillFolder])
    problems: tuple[SettingsError, ...] = ()
    """Why each other folder is none that can be used."""


def places_of(folders: Mapping[str, SkillFolder]) -> dict[str, str]:
    """Give each skill's folder, for a program that reads skills by itself."""
    return {name: str(each.path.absolute()) for name, each in folders.items()}


def read_folders(folders: Iterable[Path], most_chars: int) -> Found:
    """Read all skills; one that is wrong is left out, and told.

    Args:
        folders: each with one folder for each skill.
        most_chars: longest instructions.
    """
    skills: dict[str, SkillFolder] = {}
    problems: list[SettingsError] = []
    for folder in folders:
        try:
            inside = sorted(path for path in folder.iterdir() if path.is_dir())
        except OSError as error:
            text = f"cannot be read: {error.strerror or error}"
            problems.append(SettingsError(text, file=str(folder)))
            continue
        for path in inside:
            if not (path / SKILL_FILE).exists():
                continue
            try:
                found = read_skill(path, most_chars)
            except SettingsError as error:
                problems.append(error)
                continue
            name = found.skill.name
            if name in skills:
                text = f"the skill {name!r} is taken from {skills[name].path} instead"
                problems.append(SettingsError(text, file=str(path)))
            elif len(skills) >= MOST_SKILLS:
                text = f"more than {MOST_SKILLS} skills"
                problems.append(SettingsError(text, file=str(path)))
            else:
                skills[name] = found
    return Found(skills, tuple(problems))


def read_skill(path: Path, most_chars: int) -> SkillFolder:
    """Read the skill of one folder.

    Raises:
        SettingsError: its SKILL.md is wrong; says where and how.
    """
    file = str(path / SKILL_FILE)
    try:
        text = read_bundled(path, SKILL_FILE, most_bytes=LARGEST_FILE)
    except ValueError as error:
        raise SettingsError(str(error), file=file) from error
    head, body = split(text, file)
    tree = parse(head, file)
    body = clean(body, max(1, len(body)))
    if len(body) > most_chars:
        text = f"its instructions are above {most_chars} characters"
        hint = "put parts of them into files beside it, or raise skills.max_body_chars"
        raise SettingsError(text, file=file, hint=hint)
    skill = Skill(
        name=name_of(tree, path.name, file),
        description=description_of(tree, file),
        triggers=triggers_of(tree, file),
        body=body,
        files=files_of(path, but=SKILL_FILE),
    )
    check_further(tree, file)
    return SkillFolder(skill, path, tree)


def name_of(tree: dict[str, Tree], folder: str, file: str) -> str:
    """Give the skill's name.

    Raises:
        SettingsError: it is none, or not the folder's.
    """
    name = tree.get("name")
    fits = isinstance(name, str) and NAME.fullmatch(name) and len(name) <= LONGEST_NAME
    if not isinstance(name, str) or not fits:
        hint = "small letters and digits, parted by single hyphens, 64 at most"
        raise SettingsError("'name' is missing or none", file=file, hint=hint)
    if name != folder:
        text = f"'name' is {name!r}, but its folder is called {one_line(folder, 80)!r}"
        raise SettingsError(text, file=file, hint="call both the same")
    return name


def description_of(tree: dict[str, Tree], file: str) -> str:
    """Give what the skill is for, in one line.

    Raises:
        SettingsError: it does not say, or too long.
    """
    words = tree.get("description")
    if not isinstance(words, str) or not one_line(words, LONGEST_DESCRIPTION):
        hint = "say what it is for and when to use it"
        raise SettingsError("'description' is missing", file=file, hint=hint)
    if len(words) > LONGEST_DESCRIPTION:
        text = f"'description' is above {LONGEST_DESCRIPTION} characters"
        raise SettingsError(text, file=file)
    return one_line(words, LONGEST_DESCRIPTION)


def triggers_of(tree: dict[str, Tree], file: str) -> tuple[str, ...]:
    """Give the words that call for the skill.

    Raises:
        SettingsError: they are no list of words, or too many.
    """
    metadata = tree.get("metadata")
    inner = metadata.get("triggers") if isinstance(metadata, dict) else None
    given = tree.get("triggers", inner)
    if given is None or given == "":
        return ()
    listed = given.split(",") if isinstance(given, str) else given
    found = [each for each in listed if isinstance(each, str)]
    words = [one_line(each, LONGEST_TRIGGER + 1) for each in found]
    fit = all(0 < len(each) <= LONGEST_TRIGGER for each in words)
    if not isinstance(listed, list) or len(found) < len(listed) or not fit:
        hint = f'for example: triggers: "invoice, tax return" ({LONGEST_TRIGGER} each)'
        raise SettingsError("'triggers' are no list of words", file=file, hint=hint)
    if len(words) > MOST_TRIGGERS:
        raise SettingsError(f"more than {MOST_TRIGGERS} 'triggers'", file=file)
    return tuple(dict.fromkeys(words))


def check_further(tree: dict[str, Tree], file: str) -> None:
    """Check what the specification has besides.

    Raises:
        SettingsError: a part has not the shape that it says.
    """
    for key in ("license", "compatibility"):
        if not isinstance(tree.get(key, ""), str):
            raise SettingsError(f"{key!r} must be a text", file=file)
    if len(str(tree.get("compatibility", ""))) > LONGEST_COMPATIBILITY:
        text = f"'compatibility' is above {LONGEST_COMPATIBILITY} characters"
        raise SettingsError(text, file=file)
    if not isinstance(tree.get("metadata", {}), (dict, str)):
        raise SettingsError("'metadata' must be a table", file=file)
    if isinstance(tree.get("allowed-tools", ""), dict):
        raise SettingsError("'allowed-tools' must be a text or a list", file=file)
