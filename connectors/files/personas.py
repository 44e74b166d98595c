"""Reads who agents are from their folders, and hears when somebody changes that.

A folder holds up to six files, each a layer of the prompt. What changes is in
the prompt of the agent's next turn; a file with a mistake changes nothing.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import trio

from actors import names
from actors.protocol import ReplaceFiles
from actors.rules.prompt.brief import PersonaFiles
from runtime.errors import SettingsError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from runtime.actor.ref import ActorRef
    from runtime.telemetry.metrics import Metrics


LOOK_EVERY = 2.0
"""Seconds."""

# Chosen: seconds without a further change until files count as written; editors and
# deployments write several in a row.
SETTLED_AFTER = 0.25

# Chosen: seconds after which a file that is written to again and again is read anyway.
LONGEST_WRITING = 10.0

Look = dict["Path", tuple[int, int, int] | None]
"""By file: when it was changed, its size and which one it is; None if there is none."""


def look(files: Iterable[Path]) -> Look:
    """Look at files once."""
    seen: Look = {}
    for file in files:
        try:
            status = file.stat()
        except OSError:
            seen[file] = None
        else:
            seen[file] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return seen


async def wait_changed(
    known: Look, *, within: float = math.inf, every: float = LOOK_EVERY
) -> Look:
    """Wait until files look different, and have done so for a moment.

    Args:
        within: seconds after which to return anyway.
        every: seconds between two looks.

    Returns:
        How they look now.
    """
    until = trio.current_time() + within
    seen = known
    while seen == known and trio.current_time() < until:
        await trio.sleep(min(every, max(until - trio.current_time(), 0.0)))
        seen = await look_aside(known)
    if seen == known:
        return seen
    until = trio.current_time() + LONGEST_WRITING
    while trio.current_time() < until:
        await trio.sleep(SETTLED_AFTER)
        before, seen = seen, await look_aside(known)
        if seen == before:
            break
    return seen


async def look_aside(files: Iterable[Path]) -> Look:
    """Look in a thread: a network mount may keep one waiting."""
    return await trio.to_thread.run_sync(look, tuple(files), abandon_on_cancel=True)


LOG = EventLog("personas")

FILES = {
    "identity": "IDENTITY.md",
    "soul": "SOUL.md",
    "motivations": "MOTIVATIONS.md",
    "goals": "GOALS.md",
    "agents": "AGENTS.md",
    "legacy": "legacy.md",
}
"""What a folder may hold: the layer of the prompt, then its file."""

# Chosen: some 16,000 tokens, more than any budget of a layer is set to; a larger file
# was not meant to be read out with every message.
MOST_BYTES = 65_536


def read_persona(folder: Path) -> PersonaFiles:
    """Read the files of a folder; those that are not there are empty.

    Raises:
        SettingsError: a file cannot be read, is too long or no UTF-8 text; `file` says
            which.
    """
    return PersonaFiles(
        **{layer: _read(folder / name) for layer, name in FILES.items()}
    )


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise SettingsError(
            f"cannot be read: {error.strerror}", file=str(file)
        ) from error
    if len(content) > MOST_BYTES:
        raise SettingsError(
            f"is longer than {MOST_BYTES:,} bytes",
            file=str(file),
            hint="it is sent with every message: keep what matters, or make it a skill",
        )
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").strip()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SettingsError(
            "is not UTF-8 text", file=str(file), line=line, hint="save it as UTF-8"
        ) from error


def unknown_files(folder: Path) -> list[str]:
    """Name the texts of a folder that nobody reads."""
    known = {*FILES.values(), "README.md"}
    return sorted(each.name for each in folder.glob("*.md") if each.name not in known)


class Personas:
    """The texts of all agents, as they are now.

    Raises:
        SettingsError: as in `read_persona`.
    """

    def __init__(self, folders: Mapping[str, Path], metrics: Metrics) -> None:
        self._folders = dict(folders)
        self._waiting = trio.CancelScope()
        self._known = self._look()  # before they are read: no change is missed
        self._current = {name: read_persona(each) for name, each in folders.items()}
        self._reloads = metrics.counter(
            "callboard_persona_reloads",
            "Changes of agents' files while it ran, by what became of them.",
            ("outcome",),
        )

    def reading(self, agent: str) -> Callable[[], PersonaFiles]:
        """Give what reads an agent's texts as they are then."""
        return partial(self._of, agent)

    def _of(self, agent: str) -> PersonaFiles:
        return self._current.get(agent, PersonaFiles())

    def _look(self) -> Look:
        return look(self._files(self._folders))

    def _files(self, agents: Iterable[str]) -> list[Path]:
        return [
            self._folders[agent] / name for agent in agents for name in FILES.values()
        ]

    async def run(
        self, find: Callable[[str], ActorRef | None], every: float = LOOK_EVERY
    ) -> None:
        """Hand each change to its agent; never returns.

        Args:
            find: gives a living actor by its name.
            every: seconds between two looks at the files.
        """
        while True:
            with trio.CancelScope() as self._waiting:  # other folders end it
                await self.take_over(find, every)

    def adopt(
        self,
        folders: Mapping[str, Path],
        texts: Mapping[str, PersonaFiles],
        find: Callable[[str], ActorRef | None],
    ) -> None:
        """Go by other folders from now on."""
        if folders == self._folders:
            return
        before, self._folders = self._current, dict(folders)
        self._current = {name: texts.get(name) or self._of(name) for name in folders}
        self._known = self._look()
        self._waiting.cancel()
        for agent in before.keys() | self._current.keys():
            if self._of(agent) != before.get(agent, PersonaFiles()):
                self._hand_on(agent, find)

    def _hand_on(self, agent: str, find: Callable[[str], ActorRef | None]) -> None:
        actor = find(names.agent(agent))
        if actor is not None:  # else it reads them when it starts
            actor.tell(ReplaceFiles(self._of(agent)))

    async def take_over(
        self, find: Callable[[str], ActorRef | None], every: float = LOOK_EVERY
    ) -> None:
        """Wait for one change, and hand it to its agent; see `run`."""
        seen = await wait_changed(self._known, every=every)
        before, self._known = self._known, seen
        for agent in self._folders:
            files = self._files((agent,))
            if any(seen[file] != before[file] for file in files):
                await self._renew(agent, find)

    async def _renew(self, agent: str, find: Callable[[str], ActorRef | None]) -> None:
        try:
            texts = await trio.to_thread.run_sync(read_persona, self._folders[agent])
        except SettingsError as error:
            self._reloads.add(1, "refused")
            LOG.warning(
                "persona not taken over; the last good one stays",
                agent=agent,
                why=str(error),
                hint=error.hint,
            )
            return
        if texts == self._current[agent]:
            return
        self._current[agent] = texts
        self._hand_on(agent, find)
        self._reloads.add(1, "applied")
        LOG.info("persona read again", agent=agent)
