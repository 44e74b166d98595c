"""Brave's search engine, by its Web Search API.

Source: https://api-dashboard.search.brave.com/documentation
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

import msgspec

from connectors.fetch.messages import FetchError, FetchRequest
from connectors.tools.web.engine import Hit, SearchError, cleaned, decode

if TYPE_CHECKING:
    from connectors.fetch.messages import Fetch, Fetched

BRAVE = "https://api.search.brave.com"

MOST = 20
"""Hits that one request may ask for."""


class BraveResults(msgspec.Struct, frozen=True):
    """One result, as far as it is used."""

    url: str = ""
    title: str = ""
    description: str | None = None


class Pages(msgspec.Struct, frozen=True):
    """The results that are web pages."""

    results: list[BraveResults] = []


class BraveAnswer(msgspec.Struct, frozen=True):
    """The answer to one search; without `web` nothing was found."""

    type: str
    web: Pages | None = None


class BraveSearch:
    """One account with Brave.

    Args:
        base_url: up to and without `/res/v1`.
        key: the account's key.
        fetch: the guarded way out.
    """

    def __init__(self, base_url: str, key: str, fetch: Fetch) -> None:
        self._url = base_url.rstrip("/") + "/res/v1/web/search"
        self._key = key
        self._fetch = fetch

    async def search(self, query: str, count: int, owner: str = "") -> tuple[Hit, ...]:
        """Search; see the port."""
        asked = urlencode(
            {"q": query, "count": min(count, MOST), "text_decorations": "false"}
        )
        request = FetchRequest(
            url=f"{self._url}?{asked}",
            headers=(
                ("Accept", "application/json"),
                ("X-Subscription-Token", self._key),
            ),
            owner=owner,
        )
        try:
            fetched = await self._fetch(request)
        except FetchError as error:
            raise SearchError(f"Brave was not reached: {error}") from error
        if not fetched.is_success:
            raise SearchError(refusal(fetched))
        answer = decode(fetched, BraveAnswer, "Brave")
        pages = answer.web.results if answer.web is not None else []
        hits = [Hit(each.title, each.url, each.description or "") for each in pages]
        return cleaned(hits, count)


def refusal(fetched: Fetched) -> str:
    """Say what an error status means."""
    match fetched.status:
        case 401 | 403 | 422 if is_about_key(fetched):
            return (
                f"Brave did not accept the key (HTTP {fetched.status}); check "
                "web_search.api_key"
            )
        case 402:
            return "the quota of the account with Brave is used up (HTTP 402)"
        case 429:
            return "Brave has had too many requests (HTTP 429); try again later"
        case status:
            return f"Brave failed (HTTP {status})"


def is_about_key(fetched: Fetched) -> bool:
    """Tell a wrong key, which Brave also answers with 422, from a wrong query."""
    return fetched.status != 422 or b"SUBSCRIPTION_TOKEN_INVALID" in fetched.body
