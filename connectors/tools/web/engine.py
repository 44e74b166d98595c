"""What the tool `web_search` needs from a search engine.

Implemented by `connectors/tools/web/searxng.py` and `brave.py`; both pass
`tests/contracts/test_web_search.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec

if TYPE_CHECKING:
    from connectors.fetch.messages import Fetched


class SearchError(Exception):
    """The engine gave no results; the text says why, without secrets."""


class Hit(msgspec.Struct, frozen=True):
    """One page that was found; every word of it is a stranger's."""

    title: str
    url: str
    snippet: str = ""


class WebSearch(Protocol):
    """A search engine."""

    async def search(self, query: str, count: int, owner: str = "") -> tuple[Hit, ...]:
        """Search the web.

        Args:
            query: what to look for, not empty.
            count: most hits wanted, at least 1.
            owner: see `FetchRequest`.

        Returns:
            At most `count` hits, best first; each with an http or https address.

        Raises:
            SearchError: it refused, broke its protocol, or was not reached.
        """
        ...


Answer = TypeVar("Answer", bound=msgspec.Struct)


def decode(fetched: Fetched, kind: type[Answer], engine: str) -> Answer:
    """Decode an engine's JSON.

    Raises:
        SearchError: it is none, or of another shape.
    """
    try:
        return msgspec.json.decode(fetched.body, type=kind)
    except (ValueError, RecursionError) as error:
        raise SearchError(
            f"{engine} broke its protocol: its answer is not JSON "
            f"of the documented shape"
        ) from error


def cleaned(hits: list[Hit], count: int) -> tuple[Hit, ...]:
    """Keep the first hits that have a title and lead to the web, each page once."""
    good = (h for h in hits if h.url.startswith(("http://", "https://")))
    return tuple({hit.url: hit for hit in reversed(list(good))}.values())[::-1][:count]


def door_of(base_url: str) -> str:
    """Give host and port of an engine's address, as `[fetch] allow` takes them.

    Args:
        base_url: a checked http or https address.
    """
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
