"""SearXNG, a search engine that people host themselves, by its JSON API.

Source: https://docs.searxng.org/dev/search_api.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

import msgspec

from connectors.fetch.messages import FetchError, FetchRequest
from connectors.tools.web.engine import Hit, SearchError, cleaned, decode

if TYPE_CHECKING:
    from connectors.fetch.messages import Fetch, Fetched


class SearxngResult(msgspec.Struct, frozen=True):
    """One result, as far as it is used."""

    url: str = ""
    title: str = ""
    content: str | None = None


class SearxngAnswer(msgspec.Struct, frozen=True):
    """The answer to one search."""

    results: list[SearxngResult]


class SearxngSearch:
    """One SearXNG server.

    Args:
        base_url: its address, up to and without `/search`.
        fetch: a way out that is allowed to reach it.
    """

    def __init__(self, base_url: str, fetch: Fetch) -> None:
        self._url = base_url.rstrip("/") + "/search"
        self._fetch = fetch

    async def search(self, query: str, count: int, owner: str = "") -> tuple[Hit, ...]:
        """Search; see the port."""
        asked = urlencode({"q": query, "format": "json"})
        request = FetchRequest(
            url=f"{self._url}?{asked}",
            headers=(("Accept", "application/json"),),
            owner=owner,
        )
        try:
            fetched = await self._fetch(request)
        except FetchError as error:
            raise SearchError(f"SearXNG was not reached: {error}") from error
        if not fetched.is_success:
            raise SearchError(refusal(fetched))
        answer = decode(fetched, SearxngAnswer, "SearXNG")
        hits = [
            Hit(each.title, each.url, each.content or "") for each in answer.results
        ]
        return cleaned(hits, count)


def refusal(fetched: Fetched) -> str:
    """Say what an error status means."""
    match fetched.status:
        case 403:
            return (
                "SearXNG refused (HTTP 403): whoever runs it must list json under "
                "search.formats in its settings.yml"
            )
        case 429:
            return "SearXNG has had too many requests (HTTP 429); try again later"
        case status:
            return f"SearXNG failed (HTTP {status})"
