"""Proves that every search engine keeps what the port `WebSearch` promises."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
import trio

from connectors.config.tools import FetchConfig
from connectors.fetch.fetcher import Fetcher
from connectors.tools.web.web_search import (
    BraveSearch,
    Hit,
    SearchError,
    SearxngSearch,
    WebSearch,
    door_of,
)
from tests.fakes.sites.site import Site, open_site, response

KEY = "a-key-that-is-secret"
Found = list[dict[str, object]]


def searxng_answer(found: Found) -> object:
    """Write an answer as SearXNG's documentation has it."""
    kept = [{**each, "content": each["snippet"], "engine": "x"} for each in found]
    return {"query": "q", "number_of_results": 0, "results": kept, "answers": []}


def brave_answer(found: Found) -> object:
    """Write an answer as Brave's documentation has it."""
    kept = [{**each, "description": each["snippet"], "age": "1 day"} for each in found]
    return {"type": "search", "query": {"original": "q"}, "web": {"results": kept}}


ANSWERS = {"searxng": searxng_answer, "brave": brave_answer}


@pytest.fixture(params=ANSWERS)
def kind(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


def engine_of(kind: str, site: Site) -> WebSearch:
    base_url = f"http://127.0.0.1:{site.port}/"
    fetcher = Fetcher(FetchConfig(timeout=2.0), doors=(door_of(base_url),))
    if kind == "brave":
        return BraveSearch(base_url, KEY, fetcher.fetch)
    return SearxngSearch(base_url, fetcher.fetch)


def hit(number: int, **more: object) -> dict[str, object]:
    return {"title": f"t{number}", "url": f"https://x/{number}", "snippet": "s"} | more


async def searched(
    kind: str, respond: Callable[[str], bytes], count: int = 5
) -> tuple[tuple[Hit, ...], Site]:
    hits: tuple[Hit, ...] = ()
    failure: SearchError | None = None
    async with open_site(respond) as site:
        try:
            with trio.fail_after(10):
                hits = await engine_of(kind, site).search("b\u00fccher & mehr", count)
        except SearchError as error:
            failure = error  # raised inside, it would come out in a group
    if failure is not None:
        raise failure
    return hits, site


def answering(kind: str, *found: dict[str, object]) -> Callable[[str], bytes]:
    body = msgspec.json.encode(ANSWERS[kind](list(found)))
    return lambda _: response(body, Content_Type="application/json")


async def test_it_finds_pages_in_order(kind: str) -> None:
    hits, site = await searched(kind, answering(kind, hit(1), hit(2), hit(3)), 2)
    assert hits == (Hit("t1", "https://x/1", "s"), Hit("t2", "https://x/2", "s"))
    query = parse_qs(urlsplit(site.paths[0]).query)
    assert query["q"] == ["b\u00fccher & mehr"]
    assert (KEY.encode() in site.requests[0]) == (kind == "brave")
    assert KEY not in site.paths[0]


async def test_nothing_found_is_no_error(kind: str) -> None:
    assert (await searched(kind, answering(kind)))[0] == ()


async def test_what_leads_nowhere_or_twice_to_the_same_is_left_out(kind: str) -> None:
    odd = [hit(1, url="javascript:x"), hit(2, url=""), hit(3), hit(3), hit(4)]
    hits, _ = await searched(kind, answering(kind, *odd))
    assert [each.url for each in hits] == ["https://x/3", "https://x/4"]


async def test_a_page_without_an_excerpt_is_kept(kind: str) -> None:
    hits, _ = await searched(kind, answering(kind, hit(1, snippet=None)))
    assert hits == (Hit("t1", "https://x/1", ""),)


BROKEN = {
    "no JSON": response(b"<html>hello"),
    "another shape": response(b'{"results": 1, "web": 1, "type": 1}'),
    "a list": response(b"[]"),
    "deep": response(b"[" * 100_000),
    "nothing": response(b""),
    "cut off": response(b'{"resu', Content_Length=100),
    "not HTTP": b"hello\r\n\r\n",
    "silence": b"",
    "500": response(b"oops", "500 Internal Server Error"),
    "429": response(b"slow", "429 Too Many Requests"),
    "403": response(b"no", "403 Forbidden"),
    "402": response(b"pay", "402 Payment Required"),
    "422": response(b'{"error": {"code": "SUBSCRIPTION_TOKEN_INVALID"}}', "422 No"),
    "to metadata": response(b"", "302 Found", Location="http://169.254.169.254/"),
}


@pytest.mark.parametrize("fault", BROKEN)
async def test_a_fault_is_an_error_that_says_whose(kind: str, fault: str) -> None:
    with pytest.raises(SearchError) as caught:
        await searched(kind, lambda _: BROKEN[fault])
    text = str(caught.value)
    assert ("Brave" if kind == "brave" else "SearXNG") in text
    assert KEY not in text
    assert "cher" not in text  # neither are the words that were searched for


@pytest.mark.parametrize(
    ("kind", "fault", "says"),
    [
        ("searxng", "403", "search.formats"),
        ("searxng", "429", "try again later"),
        ("brave", "429", "try again later"),
        ("brave", "422", "web_search.api_key"),
        ("brave", "403", "web_search.api_key"),
        ("brave", "402", "quota"),
    ],
)
async def test_a_refusal_says_what_to_do(kind: str, fault: str, says: str) -> None:
    with pytest.raises(SearchError, match=says):
        await searched(kind, lambda _: BROKEN[fault])
