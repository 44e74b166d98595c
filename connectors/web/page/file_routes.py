"""Files that agents send, for who may read the chat in which they were sent."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from starlette.responses import FileResponse

from connectors.web.errors import ApiError
from connectors.web.page.headers import FILE_POLICY
from connectors.web.page.places import may_read, place_of
from connectors.web.page.sent import FILES, is_picture, kept_bytes

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from actors.messages import SentFile
    from connectors.web.page.chat import Chat
    from connectors.web.page.front import Routes, Visit

ANSWER = re.compile(r"a[0-9a-f]{24}")
"""The id of what an agent has said; see `messages.answer_id`."""

UNSHOWN = "application/octet-stream"


class FileRoutes:
    """The route of all files.

    Args:
        chat: has what was said, and the files' bytes.
    """

    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    def routes(self, routes: Routes) -> list[BaseRoute]:
        """Give it."""
        return [routes.closed("GET", f"{FILES}/{{message}}", self._give)]

    async def _give(self, visit: Visit) -> Response:
        file = await self._find(visit)
        path = await asyncio.to_thread(kept_bytes, file, self._chat.blobs)
        if path is None:
            text = f"the file {file.name} is not kept any more; ask for it again"
            raise ApiError(410, text, code="file_gone")
        shows = is_picture(file)
        return FileResponse(
            path,
            headers={"content-security-policy": FILE_POLICY},
            # What is no picture is never called what a browser could run or draw.
            media_type=file.media_type if shows else UNSHOWN,
            filename=file.name.replace("/", "_"),  # other signs are quoted
            content_disposition_type="inline" if shows else "attachment",
        )

    async def _find(self, visit: Visit) -> SentFile:
        """Find the file of a message.

        Raises:
            ApiError: 404: there is none, or its chat is not theirs.
        """
        name = str(visit.request.path_params["message"])
        if ANSWER.fullmatch(name):
            said = await visit.ask(self._chat.talk.log.get, name)
            if said is not None and said.file is not None and not said.is_gone:
                config, agents = visit.front.config, self._chat.agents()
                place = place_of(said.chat, config, agents)
                if place is not None and may_read(visit.person, place):
                    return said.file
        text = "there is no such file; what was said may be forgotten by now"
        raise ApiError(404, text, code="no_file")
