"""Which servers of tools and skills a model is told of that is a program.

It starts the servers itself, in its sandbox: those that its agent lists, and those of
skills that the words call for. A file in its folder names them for the length of one
call. It reads the folders of its agent's skills by itself.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from actors.rules.prompt import skills as rules
from actors.rules.prompt import tools as tool_names
from connectors.app.tool_sources import allotted, brought_by, skills_of
from connectors.mcp.servers_file import clear_stale, has_secrets, servers_file
from connectors.models.program.environment import CallAids
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from actors.messages.inbound import ModelRequest
    from connectors.config.app import AppConfig
    from connectors.config.mcp import McpServerConfig
    from connectors.models.program.environment import Prepare

LOG = EventLog("cli")


def preparing(config: AppConfig, folder: Path) -> Prepare:
    """Make what puts the file there; put right what the last process left.

    Args:
        config: checked settings.
        folder: where the folders of conversations are: `<agent>/<conversation>`.
    """
    told = ProgramServers(config)
    stale = clear_stale(folder.glob("*/*"))
    if stale:
        LOG.info("files of calls that were cut off taken away", count=stale)

    @asynccontextmanager
    async def prepare(request: ModelRequest, home: Path) -> AsyncGenerator[CallAids]:
        servers = told.servers(request)
        # The program's model could read them in its folder.
        secret = [name for name, each in servers.items() if has_secrets(each)]
        if secret:
            LOG.warning(
                "servers with secrets are not told to a program",
                agent=request.agent,
                servers=", ".join(secret),
            )
        rest = {name: each for name, each in servers.items() if name not in secret}
        async with servers_file(home, rest) as path:
            yield CallAids(path, told.folders(request.agent))

    return prepare


class ProgramServers:
    """The servers of each agent's programs.

    Args:
        config: checked settings.
    """

    def __init__(self, config: AppConfig) -> None:
        skills = skills_of(config)
        self._config = config
        self._servers = {
            name: each for name, each in config.mcp_servers.items() if not each.disabled
        }
        self._skills = allotted(config, skills)
        self._brought = brought_by(config, skills, self._servers)

    def folders(self, agent: str) -> tuple[Path, ...]:
        """Give the folders of an agent's skills, which its program reads by itself."""
        return tuple(each.path.absolute() for each in self._skills[agent].values())

    def servers(self, request: ModelRequest) -> dict[str, McpServerConfig]:
        """Give the servers for one answer, by name."""
        tools = self._config.agents[request.agent].tools
        wanted = {tool_names.server_of(each) for each in tools}
        found = {n: each for n, each in self._servers.items() if n in wanted}
        own = [folder.skill for folder in self._skills[request.agent].values()]
        most = self._config.skills.most_triggered
        for skill in rules.triggered(request.lines[-1].text, own, most):
            if skill.name in self._brought:
                found |= self._brought[skill.name].servers
        return found
