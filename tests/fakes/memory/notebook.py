"""A notebook without files."""

from __future__ import annotations

from dataclasses import dataclass, field

import trio

from actors.ports import Jot


@dataclass
class FakeNotebook:
    """Keeps everything in lists; knows agents' skills and projects' texts."""

    skills: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """By agent, the names of its skills."""

    projects: dict[str, str] = field(default_factory=dict[str, str])
    lessons: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    bugs: list[str] = field(default_factory=list[str])
    asked_at: list[float] = field(default_factory=list[float])

    async def improve_skill(
        self, agent: str, skill: str, lesson: str, *, is_owner: bool
    ) -> Jot:
        await trio.lowlevel.checkpoint()
        name, line = skill.strip().lower(), " ".join(lesson.split())
        if not is_owner or not line or name not in self.skills.get(agent, []):
            return Jot(why="refused")
        there = self.lessons.setdefault(name, [])
        if line not in there:
            there.append(line)
        return Jot(name)

    async def report_bug(self, agent: str, at: float, text: str) -> Jot:
        await trio.lowlevel.checkpoint()
        self.asked_at.append(at)
        line = " ".join(text.split())[:2_000]
        if not line:
            return Jot(why="nothing")
        entry = f"{agent}: {line}"
        if entry not in self.bugs:
            self.bugs.append(entry)
        return Jot(line)

    async def find_project(self, name: str) -> Jot:
        await trio.lowlevel.checkpoint()
        own = next((x for x in self.projects if x.lower() == name.lower()), "")
        return Jot(own) if own else Jot(why="there is no such project")

    async def read_project(self, name: str) -> Jot:
        found = await self.find_project(name)
        return found if found.why else Jot(self.projects[found.text])
