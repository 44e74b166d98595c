"""Puts a bot's token into its requests, below all that logs or tells of a request.

Why: the Bot API has the token in the address, and httpx names the address in its logs
and errors. What it sees of ours is `/bot~/getMe`; the token comes in behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from runtime.secret import Secret


MARK = b"/bot~/"
"""Stands where the token belongs."""


class TokenCarrier(httpx.AsyncBaseTransport):
    """Carries the requests of one bot.

    Args:
        token: the bot's.
        network: what carries them on; None is the network.
        most: connections held at once.
    """

    def __init__(
        self, token: Secret, network: httpx.AsyncBaseTransport | None, most: int
    ) -> None:
        self._token = token
        self._network = network or httpx.AsyncHTTPTransport(
            limits=httpx.Limits(max_connections=most), trust_env=False
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Carry one request, with `/bot~/` made `/bot<token>/`."""
        token = self._token.reveal().strip().encode()
        path = request.url.raw_path
        begin, mark, rest = path.partition(MARK)
        url = request.url.copy_with(raw_path=begin + b"/bot" + token + b"/" + rest)
        carried = httpx.Request(
            request.method,
            url if mark else request.url,
            headers=request.headers,
            stream=request.stream,
            extensions=request.extensions,
        )
        return await self._network.handle_async_request(carried)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._network.aclose()
