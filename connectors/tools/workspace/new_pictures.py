"""Pictures that appear in an agent's folder while a turn runs.

What lay there before is compared with what lies there after. The folder is shared by
all conversations of the agent: pictures of a turn beside which another one ran may be
anybody's, so they stay where they are.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from actors.errors import ToolError
from connectors.tools.workspace.paths import WorkspaceError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from actors.messages.inbound import SentFile
    from connectors.tools.workspace.workspace import Mark, Workspace

LOG = EventLog("files")

ENDINGS = (".gif", ".jpeg", ".jpg", ".png", ".webp")
"""Of names that are looked at; the bytes decide."""

Names = tuple[str, ...]


class Watched:
    """Who watches an agent's folder now."""

    def __init__(self) -> None:
        self.watches: set[PictureWatch] = set()


class PictureWatch:
    """Watches an agent's folder for one turn; see `actors.ports.PictureWatch`.

    Args:
        enclose: copies a file of the folder.
        agent: whose folder.
        workspace: that.
        others: who watches the same one.
    """

    def __init__(
        self,
        enclose: Callable[[str, str], Awaitable[SentFile]],
        agent: str,
        workspace: Workspace,
        others: Watched,
    ) -> None:
        self._enclose = enclose
        self._agent = agent
        self._workspace = workspace
        self._others = others
        self._is_alone = not others.watches
        for each in others.watches:
            each._is_alone = False  # noqa: SLF001  its twin
        others.watches.add(self)
        self._before: dict[Names, Mark] = {}
        self._taken: dict[Names, Mark] = {}

    async def begin(self) -> None:
        """Note what lies there already."""
        self._before = await self._look()

    async def take(self, most: int) -> tuple[SentFile, ...]:
        """Copy what is new or changed; see the port."""
        found = dict(self._changed(await self._look()))
        if found and not self._is_alone:
            LOG.info("new pictures not sent: several turns ran", agent=self._agent)
            return ()
        files: list[SentFile] = []
        for names, mark in sorted(found.items())[:most]:
            try:
                file = await self._enclose(self._agent, "/".join(names))
            except ToolError as error:
                LOG.warning("new picture not sent", agent=self._agent, why=str(error))
                continue
            if file.kind == "image":
                files.append(file)
                self._taken[names] = mark
        return tuple(files)

    async def clear(self) -> None:
        """Remove what was taken, unless it has changed since; see the port."""
        for names, mark in self._taken.items():
            work = partial(self._workspace.remove, names, mark)
            try:
                await trio.to_thread.run_sync(work)
            except WorkspaceError as error:
                LOG.warning("sent picture not removed", why=str(error))

    def end(self) -> None:
        """Watch no longer."""
        self._others.watches.discard(self)

    async def _look(self) -> dict[Names, Mark]:
        try:
            return await trio.to_thread.run_sync(self._workspace.marks, ENDINGS)
        except WorkspaceError as error:
            LOG.warning("folder not looked at", agent=self._agent, why=str(error))
            return {}

    def _changed(self, now: dict[Names, Mark]) -> Iterator[tuple[Names, Mark]]:
        for names, mark in now.items():
            if self._before.get(names) != mark:
                yield names, mark
