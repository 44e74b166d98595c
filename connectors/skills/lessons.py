"""Adds what an agent has learnt to the SKILL.md of a skill that it has.

Only files that the settings' folders hold are written, and none through a link. The
file is replaced as a whole, so that a crash leaves the old one or the new one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

import trio

from actors.memory import notebook as rules
from actors.ports import Jot
from actors.rules.prompt.skills import SKILL_FILE
from actors.rules.text.similarity import did_you_mean, near_misses
from connectors.config.mcp import SkillsConfig
from connectors.files.notebook import read_whole
from connectors.skills.folder import (
    DIRECTORY,
    FILE,
    LARGEST_FILE,
    BundleError,
    SkillFolder,
    read_skill,
)
from runtime.errors import SettingsError
from runtime.telemetry.logs import EventLog

LOG = EventLog("skills")

HALF_WRITTEN = ".callboard-lesson"
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Lessons:
    """What all agents learn about their skills.

    Args:
        skills: by agent, its skills by name; a skill with a new lesson takes the place
            of the old one there, so that it counts at once.
        config: who may teach, and how long a skill may be.
    """

    def __init__(
        self, skills: Mapping[str, dict[str, SkillFolder]], config: SkillsConfig
    ) -> None:
        self._skills = skills
        self._config = config
        self._writing = trio.Lock()

    async def add(self, agent: str, skill: str, lesson: str, *, is_owner: bool) -> Jot:
        """Add a lesson; see the port `Notebook`."""
        refused = self._refused(is_owner=is_owner)
        own = self._skills.get(agent, {})
        name = skill.strip().lower()
        if not refused and name not in own:
            near = did_you_mean(near_misses(name, own))
            refused = f"it is none of the agent's skills.{near}"
        if refused:
            return Jot(why=refused)
        most, line = self._config.max_body_chars, rules.read_lesson(lesson)
        path = own[name].path
        async with self._writing:
            try:
                new = await trio.to_thread.run_sync(write_lesson, path, line, most)
            except (BundleError, SettingsError) as error:
                return Jot(why=str(error))
            self._renew(name, new)
        LOG.info("skill improved", agent=agent, skill=name)
        return Jot(name)

    def _refused(self, *, is_owner: bool) -> str:
        """Say why this person may teach nobody; empty: they may."""
        teachers = self._config.lessons_from
        if teachers == "nobody":
            return "skills are not changed here: skills.lessons_from"
        if teachers == "owners" and not is_owner:
            return "only an owner may change what all agents with it are told"
        return ""

    def _renew(self, name: str, new: SkillFolder) -> None:
        for own in self._skills.values():
            if name in own and own[name].path == new.path:
                own[name] = new


def write_lesson(path: Path, lesson: str, most_chars: int) -> SkillFolder:
    """Add a lesson to a skill's file, and read the skill anew; it blocks.

    Raises:
        BundleError: nothing is added; says why.
        SettingsError: the skill's file has become wrong otherwise.
    """
    try:
        with ExitStack() as opened:
            folder = os.open(path, DIRECTORY)
            opened.callback(os.close, folder)
            file = os.open(SKILL_FILE, FILE, dir_fd=folder)
            opened.callback(os.close, file)
            state = os.fstat(file)
            if not stat.S_ISREG(state.st_mode):
                raise BundleError("its SKILL.md is no plain file")
            text = text_of(read_whole(file, LARGEST_FILE))
            added = rules.add(text, lesson, most_chars)
            if added.why:
                raise BundleError(added.why)
            if added.text != text:
                replace(folder, added.text, state)
    except OSError as error:
        raise BundleError(
            f"its SKILL.md cannot be written: {error.strerror}"
        ) from error
    return read_skill(path, most_chars)


def text_of(content: bytes) -> str:
    """Read a file's content.

    Raises:
        BundleError: it is too long, or no text.
    """
    if len(content) > LARGEST_FILE:
        raise BundleError(f"its SKILL.md is above {LARGEST_FILE} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BundleError("its SKILL.md is no text in UTF-8") from error


def replace(folder: int, text: str, before: os.stat_result) -> None:
    """Write a skill's file anew, whole or not at all.

    Args:
        before: what was seen of the file when it was read.

    Raises:
        BundleError: it would be too long, or somebody else has changed it meanwhile.
        OSError: the disk says no.
    """
    content = text.encode("utf-8", "replace")
    if len(content) > LARGEST_FILE:
        raise BundleError(f"its SKILL.md would be above {LARGEST_FILE} bytes")
    with suppress(FileNotFoundError):  # of a crash
        os.unlink(HALF_WRITTEN, dir_fd=folder)
    handle = os.open(HALF_WRITTEN, NEW, 0o600, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as writing:
            writing.write(content)
            writing.flush()
            os.fchmod(handle, stat.S_IMODE(before.st_mode))
            os.fsync(handle)
        check_same(folder, before)
        os.replace(HALF_WRITTEN, SKILL_FILE, src_dir_fd=folder, dst_dir_fd=folder)
    except (OSError, BundleError):
        with suppress(OSError):
            os.unlink(HALF_WRITTEN, dir_fd=folder)
        raise
    os.fsync(folder)


def check_same(folder: int, before: os.stat_result) -> None:
    """Check that nobody has changed a skill's file since it was read.

    Raises:
        BundleError: somebody has, and may be at it still.
    """
    now = os.stat(SKILL_FILE, dir_fd=folder, follow_symlinks=False)
    if (now.st_ino, now.st_mtime_ns) != (before.st_ino, before.st_mtime_ns):
        raise BundleError("somebody is changing its SKILL.md just now")
