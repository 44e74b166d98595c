"""Keeps AGENTS.md in the agents' folders true: at the start, then every day (F299)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import msgspec
import trio

from connectors import guide
from connectors.projects import ProjectError, names_in
from connectors.tools.files import beside
from connectors.tools.paths import WorkspaceError
from runtime.actor import Actor
from runtime.child import ChildSpec
from runtime.errors import DeclineStart
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.config import AgentConfig
    from connectors.config import AppConfig
    from connectors.tools.files import Desks
    from runtime.metrics import Counter, Metrics

LOG = EventLog("workspace")

NEEDING = frozenset({"list_files", "read_file", "run_shell", "send_file", "write_file"})
"""Tools by which an agent comes by its folder."""

Described = dict[str, tuple[tuple[str, str], ...]]
"""By agent: the names of its skills, and what each is for."""


def has_folder(agent: AgentConfig) -> bool:
    """Whether an agent comes by its folder."""
    return bool(NEEDING.intersection(agent.tools))


class Refresh(msgspec.Struct, frozen=True):
    """A note to itself: see whether the files are still true."""


@dataclass(frozen=True)
class Source:
    """Where the files' contents come from."""

    config: AppConfig
    skills: Callable[[], Described]
    """Reads all skills as they are now; it blocks."""

    def guides(self) -> dict[str, guide.Guide]:
        """Say what each file is to tell; it blocks."""
        config, described = self.config, self.skills()
        projects = self._projects()
        return {
            name: guide.Guide(
                agent=name,
                description=agent.description,
                tools=tuple(sorted(agent.tools)),
                skills=described.get(name, ()),
                projects=projects if "project" in agent.markers else (),
                max_bytes=config.workspace.max_bytes,
                max_file_bytes=config.workspace.max_file_bytes,
            )
            for name, agent in config.agents.items()
            if has_folder(agent)
        }

    def _projects(self) -> tuple[str, ...]:
        folder = self.config.projects.folder
        if folder is None:
            return ()
        try:
            return names_in(folder)
        except ProjectError as error:
            LOG.warning("projects not listed", why=str(error))
            return ()


class Steward(Actor):
    """Writes the files anew when what they tell has changed.

    Takes: nothing.
    Sends: nothing.
    Keeps: nothing; it reads each file before it writes it.
    Fails: never by a folder that cannot be written; others are looked after, and it
        tries again the next time.
    Ends: with the system.

    Args:
        source: what the files are to tell.
        desks: the agents' folders.
        every: seconds between two looks.
        count: of files, by what became of them.
    """

    deadline: ClassVar[float | None] = 300.0

    def __init__(
        self, source: Source, desks: Desks, every: float, count: Counter
    ) -> None:
        super().__init__()
        self._source = source
        self._desks = desks
        self._every = every
        self._count = count

    def on_start(self) -> None:
        """Look now, and every now and then."""
        self.note(Refresh())
        self.every(self._every, Refresh())

    def on_receive(self, message: object) -> object:
        """Look once."""
        if isinstance(message, Refresh):
            return self._refresh()
        return super().on_receive(message)

    async def _refresh(self) -> None:
        guides = await trio.to_thread.run_sync(self._source.guides)
        for agent, each in guides.items():
            part = guide.written(each)
            try:
                async with self._desks.writing(agent):
                    is_new = await beside(partial(self._write, agent, part))
            except (WorkspaceError, OSError) as error:
                self._count.add(1, "failed")
                LOG.warning("folder's guide not written", agent=agent, why=str(error))
                continue
            self._count.add(1, "written" if is_new else "unchanged")

    def _write(self, agent: str, part: str) -> bool:
        """Write one file unless it is true; it blocks."""
        workspace = self._desks.of(agent)
        there = workspace.entries((), is_deep=False, most=self._desks.config.max_files)
        old = ""
        if any(each.names == (guide.FILE,) for each in there):
            try:
                old = workspace.read((guide.FILE,)).decode()
            except UnicodeDecodeError as error:
                raise WorkspaceError(f"{guide.FILE} is no text in UTF-8") from error
        new = guide.merged(old, part)
        if new != old:
            workspace.write((guide.FILE,), new.encode(), append=False)
        return new != old


def steward_spec(
    sources: Callable[[], tuple[Source, Desks]], metrics: Metrics
) -> ChildSpec:
    """Say how the steward is started; there is none if no agent has a folder then.

    Args:
        sources: gives what the files are to tell, and where they are, as it is then.
        metrics: where the files are counted.
    """
    count = metrics.counter(
        "callboard_workspace_guides",
        "Looks at AGENTS.md of agents' folders, by what became of it.",
        ("outcome",),
    )

    def start() -> Steward:
        source, desks = sources()
        config = source.config
        every = config.workspace.guide_every
        if not every or not any(map(has_folder, config.agents.values())):
            raise DeclineStart
        return Steward(source, desks, every, count)

    return ChildSpec(name="steward", start=start)
