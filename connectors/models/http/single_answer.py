"""One request and its whole answer, for providers that stream nothing.

What embeddings and transcriptions have in common: how much is read at most, and what
errors of the network and of the provider are called.
"""

from __future__ import annotations

from collections.abc import Callable

import httpx
import msgspec

from connectors.models.http.exchange import abandon
from connectors.models.openai.errors import read_error
from connectors.models.provider_errors import ErrorContext, read_headers

HEADERS = {"Accept-Encoding": "identity", "User-Agent": "callboard"}
"""To be sent with each request: nothing compressed is read."""

MOST_OF_ERROR = 65_536
"""Bytes of an error that are looked at."""


class SingleAnswerParts(msgspec.Struct, frozen=True):
    """How a provider is asked."""

    provider: ErrorContext
    most: int
    """Bytes of an answer."""

    timeout: float
    """Seconds that an answer may take, for what is said of one that takes longer."""

    wall_clock: Callable[[], float]
    """Gives Unix seconds, for a `Retry-After` that is a date."""


async def answer(
    client: httpx.AsyncClient, request: httpx.Request, asking: SingleAnswerParts
) -> bytes:
    """Send a request; give all of its answer.

    Raises:
        ModelError: what the network or the provider says; see `ErrorContext`.
    """
    provider = asking.provider
    try:
        response = await client.send(request, stream=True)
        try:
            body = await read(response, asking)
        finally:
            await response.aclose()
    except httpx.TimeoutException as error:
        late = f"not done after {asking.timeout:g} s"
        raise provider.busy(late, "timeout", plain=late) from error
    except httpx.HTTPError as error:
        text = provider.quote(str(error)) or f": {type(error).__name__}"
        text = f"connection failed{text}"
        raise provider.busy(text, "network", plain=text) from error
    if not response.is_success:
        wait = read_headers(response.headers, asking.wall_clock())
        said = body[:MOST_OF_ERROR]
        raise provider.status_error(response.status_code, said, read_error(said), wait)
    return body


async def read(response: httpx.Response, asking: SingleAnswerParts) -> bytes:
    """Read a body, up to a bound.

    Raises:
        ModelError: it is longer, or compressed.
    """
    if response.headers.get("content-encoding", "identity") != "identity":
        # Not asked for, and a small compressed body can fill the memory.
        raise asking.provider.broken("its answer is compressed")
    body = bytearray()
    chunks = response.aiter_bytes()
    try:
        async for chunk in chunks:
            body += chunk
            if len(body) > asking.most:
                text = f"its answer is above {asking.most} bytes"
                raise asking.provider.broken(text)
    finally:
        await abandon(chunks)
    return bytes(body)
