"""Messages with files, as a Discord reads them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from aiohttp import BodyPartReader

if TYPE_CHECKING:
    from aiohttp import web

Json = dict[str, Any]

MOST_UPLOAD = 10 * 1024 * 1024


async def read_message(request: web.Request) -> tuple[Json, dict[str, bytes]]:
    """Read a message, and the files of its form by their names."""
    if not request.content_type.startswith("multipart/"):
        return await request.json(), {}
    said: Json = {}
    files: dict[str, bytes] = {}
    async for part in await request.multipart():
        assert isinstance(part, BodyPartReader)
        if part.name == "payload_json":
            said = json.loads(await part.read())
        else:
            assert part.name == f"files[{len(files)}]"
            files[str(part.filename)] = bytes(await part.read())
    named = [each["filename"] for each in said.get("attachments", [])]
    assert named == [*files]
    return said, files


def listed(attachments: list[Json]) -> list[Json]:
    """List files as a message shows them: Discord makes their names plain."""
    return [
        {
            "id": str(700 + number),
            "filename": re.sub(r"[^A-Za-z0-9._-]+", "_", each["filename"]),
            "size": 1,
            "url": "https://cdn.test/x",
            "proxy_url": "https://cdn.test/x",
        }
        for number, each in enumerate(attachments)
    ]
