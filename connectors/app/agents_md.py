"""Keeps AGENTS.md in the agents' folders true: at the start, then every day.

What AGENTS.md in an agent's folder says of it and of the agent; pure.

The program writes one part of the file, between two lines of its own. What stands
around it is the agent's, or the operator's, and stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import ClassVar

import msgspec
import trio

from actors.config.agents import AgentConfig
from connectors.config.app import AppConfig
from connectors.files.notebook import ProjectError, names_in
from connectors.tools.workspace.files import Desks, beside
from connectors.tools.workspace.workspace import WorkspaceError
from runtime.actor.actor import Actor
from runtime.errors import DeclineStart
from runtime.supervision.child import ChildSpec
from runtime.telemetry.logs import EventLog
from runtime.telemetry.metrics import Counter, Metrics

FILE = "AGENTS.md"
BEGIN = "<!-- callboard: written anew every day, down to the next such line -->"
END = "<!-- callboard: what you write below is kept -->"

MOST_ROWS = 200
"""Rows of a table; of more it says how many are left out."""

MOST_CELL = 300
"""Characters of a cell."""


ABOUT = (
    "Your files live here. Paths begin in this folder, as `notes/today.md`, and nothing"
    " leads out of it. Keep what belongs to one piece of work in one folder. One file"
    " may have {one:,} bytes, all together {every:,}."
)


class Guide(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an agent and its folder."""

    agent: str
    description: str = ""
    tools: tuple[str, ...] = ()
    skills: tuple[tuple[str, str], ...] = ()
    """Names and what each is for."""

    projects: tuple[str, ...] = ()
    max_bytes: int
    """Of all files together."""

    max_file_bytes: int


def written(guide: Guide) -> str:
    """Write the program's part of the file."""
    lines = [f"# The folder of {guide.agent}", ""]
    if guide.description:
        lines += [_cell(guide.description), ""]
    about = ABOUT.format(one=guide.max_file_bytes, every=guide.max_bytes)
    lines += [about, ""]
    if guide.tools:
        lines += [f"Tools: {', '.join(map(_cell, guide.tools))}.", ""]
    if guide.skills:
        lines += _table(("Skill", "For"), guide.skills)
    if guide.projects:
        lines += _table(("Project",), [(each,) for each in guide.projects])
    return "\n".join(lines).rstrip()


def merged(old: str, part: str) -> str:
    """Put the program's part in its place; what else there is stays.

    Args:
        old: the file as it is; empty: there is none.
        part: as `written` gives it.
    """
    block = f"{BEGIN}\n{part}\n{END}\n"
    before, begin, rest = old.partition(BEGIN)
    if not begin:
        return f"{block}\n{old}" if old.strip() else block
    _, end, after = rest.partition(END)
    # Without its end, nobody knows what was somebody's: what follows is kept.
    kept = after.removeprefix("\n") if end else rest.removeprefix("\n")
    return f"{before}{block}{kept}"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    every = list(rows)
    shown = [f"| {' | '.join(map(_cell, row))} |" for row in every[:MOST_ROWS]]
    left = len(every) - len(shown)
    more = [f"({left} more are not shown.)"] if left else []
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *shown, *more, ""]


def _cell(text: str) -> str:
    """Make a text fit into a line of a table, and end no comment."""
    line = " ".join(text.split()).replace("|", "/").replace("-->", "→")
    return line if len(line) <= MOST_CELL else f"{line[: MOST_CELL - 1]}…"


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


class GuideSource(msgspec.Struct, frozen=True):
    """Where the files' contents come from."""

    config: AppConfig
    skills: Callable[[], Described]
    """Reads all skills as they are now; it blocks."""

    def guides(self) -> dict[str, Guide]:
        """Say what each file is to tell; it blocks."""
        config, described = self.config, self.skills()
        projects = self._projects()
        return {
            name: Guide(
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
        every: seconds between two looks.
    """

    deadline: ClassVar[float | None] = 300.0

    def __init__(
        self, source: GuideSource, desks: Desks, every: float, count: Counter
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
            part = written(each)
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
        if any(each.names == (FILE,) for each in there):
            try:
                old = workspace.read((FILE,)).decode()
            except UnicodeDecodeError as error:
                raise WorkspaceError(f"{FILE} is no text in UTF-8") from error
        new = merged(old, part)
        if new != old:
            workspace.write((FILE,), new.encode(), append=False)
        return new != old


def steward_spec(
    sources: Callable[[], tuple[GuideSource, Desks]], metrics: Metrics
) -> ChildSpec:
    """Say how the steward is started; there is none if no agent has a folder then.

    Args:
        sources: gives what the files are to tell, and where they are, as it is then.
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
