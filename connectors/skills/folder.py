"""Reads folders of skills, by the AgentSkills specification; runs nothing in them.

A skill is a folder with a SKILL.md: a head with `name` (the folder's own), a
`description` and perhaps `license`, `compatibility`, `metadata` and `allowed-tools`;
then the instructions. Ours beside it: `triggers`, the words that call for it, at the
top of the head or in `metadata`, as a list or parted by commas.

Source: agentskills.io/specification.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NoReturn

import yaml
from yaml import events as kinds

from actors.rules.prompt.skills import SKILL_FILE, Skill
from actors.rules.text.cleaning import clean, one_line
from connectors.files.notebook import read_whole
from runtime.errors import SettingsError

LARGEST_FILE = 512 * 1024
"""Bytes."""

MOST_FILES = 200
DEEPEST_FILE = 6
LONGEST_PATH = 300

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Why not to wait: a pipe with a file's name would be waited for, for ever.
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class BundleError(ValueError):
    """A file of a skill cannot be read; the text says why, to a model or a person."""


def files_of(folder: Path, but: str) -> tuple[str, ...]:
    """List a folder's files, as paths inside it, up to a bound."""
    found: list[str] = []
    for path in walk(folder, PurePosixPath(), 0):
        if len(found) >= MOST_FILES:
            break
        if str(path) != but:
            found.append(str(path))
    return tuple(sorted(found))


def walk(folder: Path, inside: PurePosixPath, depth: int) -> Iterator[PurePosixPath]:
    """Give plain files below a folder, hidden ones and links left out."""
    try:
        with os.scandir(folder / inside) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in listed[: 5 * MOST_FILES]:
        path = inside / entry.name
        is_odd = not entry.name.isprintable() or len(str(path)) > LONGEST_PATH
        if entry.name.startswith(".") or is_odd:
            continue
        if entry.is_file(follow_symlinks=False):
            yield path
        elif entry.is_dir(follow_symlinks=False) and depth < DEEPEST_FILE:
            yield from walk(folder, path, depth + 1)


def read_bundled(folder: Path, name: str, *, most_bytes: int = LARGEST_FILE) -> str:
    """Read one text file of a skill's folder.

    Args:
        name: a path inside it; may come from anybody.
        most_bytes: longest file.

    Raises:
        BundleError: there is none, it is too long, or is no text.
    """
    parts = PurePosixPath(name).parts
    is_inside = bool(parts) and ".." not in parts and not name.startswith("/")
    if not is_inside or "\0" in name or len(name) > LONGEST_PATH:
        raise BundleError("a file's name is a path inside the skill's folder")
    try:
        with ExitStack() as opened:
            place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            opened.callback(os.close, place)
            for part in parts[:-1]:
                place = os.open(part, DIRECTORY, dir_fd=place)
                opened.callback(os.close, place)
            file = os.open(parts[-1], FILE, dir_fd=place)
            opened.callback(os.close, file)
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise BundleError("this is no plain file")
            content = read_whole(file, most_bytes)
    except OSError as error:
        raise BundleError(f"it cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BundleError(str(error)) from error
    if len(content) > most_bytes:
        raise BundleError(f"it is above {most_bytes} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BundleError("it is no text in UTF-8") from error


Tree = str | list["Tree"] | dict[str, "Tree"]

FENCE = "---"
LARGEST_HEAD = 16 * 1024
"""Characters."""

MOST_PARTS = 1_000
DEEPEST = 8


def split(text: str, file: str) -> tuple[str, str]:
    """Part a file into its head and its body.

    Raises:
        SettingsError: it does not begin with a head.
    """
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    hint = "begin with a line ---, then name: and description:, then a line ---"
    if not lines or lines[0].rstrip() != FENCE:
        raise SettingsError("has no head", file=file, line=1, hint=hint)
    size = 0
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == FENCE:
            return "".join(lines[1:number]), "".join(lines[number + 1 :])
        size += len(line)
        if size > LARGEST_HEAD:
            text = f"its head is above {LARGEST_HEAD} characters, or has no end"
            raise SettingsError(text, file=file, line=1, hint=hint)
    raise SettingsError("its head has no end", file=file, line=1, hint=hint)


def parse(head: str, file: str) -> dict[str, Tree]:
    """Read the head; every value that is no list or table is a text.

    Raises:
        SettingsError: it is no YAML, no table, or more than is taken here.
    """
    try:
        # Why events: they come one by one, and what they make is up to us.
        tree = TreeBuilder(file).read(list_of(head, file))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 2 if mark is not None else 0
        text = f"its head is no YAML: {error.problem or error.context}"
        hint = 'a text with ": " or # in it stands in quotes'
        raise SettingsError(text, file=file, line=line, hint=hint) from error
    except (yaml.YAMLError, ValueError) as error:
        raise SettingsError(f"its head is no YAML: {error}", file=file) from error
    if not isinstance(tree, dict):
        raise SettingsError("its head is no table of names and texts", file=file)
    return tree


def list_of(head: str, file: str) -> list[kinds.Event]:
    """Take in the events, refusing what is not taken before more of it is read."""
    found: list[kinds.Event] = []
    depth = 0
    for event in yaml.parse(head, Loader=yaml.SafeLoader):
        found.append(event)
        depth += isinstance(event, kinds.CollectionStartEvent)
        depth -= isinstance(event, kinds.CollectionEndEvent)
        if depth > DEEPEST or len(found) > MOST_PARTS:
            refuse(event, file, "too much, or nested too deeply")
        if isinstance(event, kinds.AliasEvent) or getattr(event, "anchor", None):
            refuse(event, file, "anchors and aliases are not read")
        if getattr(event, "tag", None):
            refuse(event, file, "tags are not read")
    return found


def refuse(event: kinds.Event, file: str, text: str) -> NoReturn:
    """Complain of a part, where it stands.

    Raises:
        SettingsError: always.
    """
    mark = event.start_mark
    line = mark.line + 2 if mark is not None else 0
    raise SettingsError(f"its head: {text}", file=file, line=line)


class TreeBuilder:
    """Makes a tree of events."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._left: list[kinds.Event] = []

    def read(self, found: list[kinds.Event]) -> Tree:
        """Make the tree of one document; of more than one, it is no head."""
        frame = (
            kinds.StreamStartEvent,
            kinds.DocumentStartEvent,
            kinds.DocumentEndEvent,
            kinds.StreamEndEvent,
        )
        self._left = [each for each in found if not isinstance(each, frame)][::-1]
        tree = self._value(self._left.pop()) if self._left else {}
        if self._left:
            refuse(self._left[-1], self._file, "there is more than one document")
        return tree

    def _value(self, event: kinds.Event) -> Tree:
        match event:
            case kinds.ScalarEvent(value=str(text)):
                return text
            case kinds.SequenceStartEvent():
                items: list[Tree] = []
                while not self._ends(kinds.SequenceEndEvent):
                    items.append(self._value(self._left.pop()))
                return items
            case kinds.MappingStartEvent():
                return self._table()
            case _:
                refuse(event, self._file, "a part of a kind that is not read")

    def _table(self) -> dict[str, Tree]:
        table: dict[str, Tree] = {}
        while not self._ends(kinds.MappingEndEvent):
            key = self._left.pop()
            if not isinstance(key, kinds.ScalarEvent):
                refuse(key, self._file, "a name must be a text")
            if key.value in table:
                refuse(key, self._file, f"{key.value!r} stands there twice")
            table[key.value] = self._value(self._left.pop())
        return table

    def _ends(self, kind: type[kinds.Event]) -> bool:
        if isinstance(self._left[-1], kind):
            self._left.pop()
            return True
        return False


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
