"""Asks whether an Ollama server runs on this machine, and what it has."""

from __future__ import annotations

import httpx
import msgspec
import trio

USUAL_ADDRESS = "http://127.0.0.1:11434"
PATH = "/api/tags"

TIMEOUT = 1.0
"""Seconds for all of it: on this machine it answers at once, or is not there."""

MOST_BYTES = 1_048_576
MOST_MODELS = 100
MOST_NAME = 200

EMBEDDING = ("embed", "bge-", "minilm")
"""In names of models that make vectors and cannot chat."""


class OllamaDetails(msgspec.Struct, frozen=True):
    """What the server tells of a model."""

    family: str = ""


class OllamaModel(msgspec.Struct, frozen=True):
    """One model."""

    name: str
    details: OllamaDetails | None = None


class OllamaTags(msgspec.Struct, frozen=True):
    """The server's answer."""

    models: tuple[OllamaModel, ...] | None = None


async def find_models(
    base_url: str = USUAL_ADDRESS,
    timeout: float = TIMEOUT,  # noqa: ASYNC109  a setting; callers need no scope
) -> tuple[str, ...] | None:
    """Name the models of a server that can chat.

    Returns:
        None: no Ollama server answers there.
    """
    body = b""
    with trio.move_on_after(timeout) as scope:
        try:
            body = await _read(base_url.rstrip("/") + PATH)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError):
            return None
    return None if scope.cancelled_caught else read_tags(body)


async def _read(url: str) -> bytes:
    """Fetch an answer of reasonable length.

    Raises:
        httpx.HTTPError: there is none.
        ValueError: it is too long.
    """
    found = bytearray()
    # Why no proxy and no redirects: it is this machine that is asked.
    async with (
        httpx.AsyncClient(trust_env=False) as client,
        client.stream("GET", url) as response,
    ):
        async for piece in response.aiter_bytes():
            found += piece
            if len(found) > MOST_BYTES:
                raise ValueError("no list of models is so long")
    return bytes(found)


def read_tags(body: bytes) -> tuple[str, ...] | None:
    """Read the list of models; None if it is none.

    Names are another program's words: those with signs that nothing can show are left
    out.
    """
    try:
        listed = msgspec.json.decode(body, type=OllamaTags).models
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if listed is None:
        return None
    names = [each.name for each in listed if can_chat(each)]
    return tuple(dict.fromkeys(names))[:MOST_MODELS]


def can_chat(model: OllamaModel) -> bool:
    """Whether a model answers in words, as far as its name tells."""
    name = model.name
    is_name = 0 < len(name) <= MOST_NAME and name.isprintable() and name == name.strip()
    family = model.details.family if model.details else ""
    makes_vectors = any(word in name.lower() for word in EMBEDDING) or "bert" in family
    return is_name and not makes_vectors
