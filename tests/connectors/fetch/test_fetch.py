"""Proves what is fetched and what is not, against sites on loopback and a fake DNS."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import httpx
import pytest
import trio

from connectors.config.tools import FetchConfig
from connectors.fetch.fetcher import Fetched, Fetcher, FetchRequest, GuardedTransport
from connectors.fetch.messages import (
    FetchFailedError,
    FetchRefusedError,
    FetchTimeoutError,
    FetchTooLargeError,
)
from tests.fakes.sites.site import FakeDns, Site, moved, open_site, response

LOOPBACK = ("127.0.0.1",)
HERE = [["127.0.0.1"]]
METADATA = "http://169.254.169.254/latest/meta-data/"


def settings(**wanted: float | tuple[str, ...]) -> FetchConfig:
    """Allow loopback by its address, as a public one would be."""
    return FetchConfig(**({"allow": LOOPBACK, "timeout": 5.0} | wanted))  # type: ignore[arg-type]


async def fetched(
    site: Site, path: str = "/", config: FetchConfig | None = None, **more: object
) -> Fetched:
    """Fetch from a site under the name `site.example`."""
    dns = FakeDns({"site.example": HERE, "other.example": HERE})
    fetcher = Fetcher(config or settings(), resolve=dns.resolve)
    url = f"http://site.example:{site.port}{path}"
    try:
        return await fetcher.fetch(FetchRequest(url=url, **more))  # type: ignore[arg-type]
    finally:
        await fetcher.aclose()


async def test_a_page_comes_whole_under_its_name() -> None:
    page = response(b"<p>hi</p>", Content_Type="text/html", Set_Cookie="a=b")
    async with open_site(lambda _: page) as site:
        answer = await fetched(site, "/a?b=c#d", headers=(("X-Own", "1"),))
    assert (answer.status, answer.body, answer.media_type) == (
        200,
        b"<p>hi</p>",
        "text/html",
    )
    assert answer.url == f"http://site.example:{site.port}/a?b=c"
    head = site.requests[0].lower()
    assert b"host: site.example:" in head
    assert b"x-own: 1" in head
    assert b"user-agent: callboard" in head


async def test_a_post_sends_its_body() -> None:
    async with open_site(lambda _: response(b"{}")) as site:
        answer = await fetched(site, method="POST", body=b'{"a":1}')
    assert answer.is_success
    assert site.requests[0].endswith(b'\r\n\r\n{"a":1}')


async def test_an_error_status_is_an_answer() -> None:
    async with open_site(lambda _: response(b"no", "404 Not Found")) as site:
        answer = await fetched(site)
    assert (answer.status, answer.text, answer.is_success) == (404, "no", False)


async def test_a_name_that_leads_inside_is_refused_before_any_connection() -> None:
    async with open_site(lambda _: response(b"secret")) as site:
        with pytest.raises(FetchRefusedError, match=r"site.example .*this machine"):
            await fetched(site, config=settings(allow=()))
    assert site.requests == []


@pytest.mark.parametrize("others", [["127.0.0.1", "10.0.0.1"], ["::1", "127.0.0.1"]])
async def test_one_private_address_among_several_is_enough(others: list[str]) -> None:
    async with open_site(lambda _: response(b"secret")) as site:
        fetcher = Fetcher(settings(), resolve=FakeDns({"mixed": [others]}).resolve)
        with pytest.raises(FetchRefusedError, match="not public"):
            await fetcher.fetch(FetchRequest(url=f"http://mixed:{site.port}/"))
    assert site.requests == []


async def test_a_name_is_asked_for_once_and_what_was_checked_is_connected_to() -> None:
    async with open_site(lambda _: response(b"public")) as site:
        dns = FakeDns({"rebind": [["127.0.0.1"], ["169.254.169.254"]]})
        fetcher = Fetcher(settings(), resolve=dns.resolve)
        request = FetchRequest(url=f"http://rebind:{site.port}/")
        assert (await fetcher.fetch(request)).body == b"public"
        assert dns.asked == ["rebind"]
        with pytest.raises(FetchRefusedError, match="metadata"):
            await fetcher.fetch(request)
    assert len(site.requests) == 1


async def test_a_redirect_is_asked_for_anew() -> None:
    """A name that was public for the first hop is checked again for the second."""
    async with open_site(lambda _: moved("/again")) as site:
        dns = FakeDns({"rebind": [["127.0.0.1"], ["10.0.0.1"]]})
        fetcher = Fetcher(settings(), resolve=dns.resolve)
        with pytest.raises(FetchRefusedError, match=r"10\.0\.0\.1 is not public"):
            await fetcher.fetch(FetchRequest(url=f"http://rebind:{site.port}/"))
    assert site.paths == ["/"]


@pytest.mark.parametrize(
    "location",
    [
        METADATA,
        "http://[::ffff:a9fe:a9fe]/",
        "http://localhost.example/",
        "http://10.0.0.1/",
        "http://2852039166/",
        "//169.254.169.254/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_FLUSHALL",
        "http://x@site.example/",
        "http://127.0.0.1:6379/",
    ],
)
async def test_a_redirect_into_the_dark_is_refused(location: str) -> None:
    async with open_site(lambda _: moved(location)) as site:
        with pytest.raises((FetchRefusedError, FetchFailedError)) as caught:
            await fetched(site)
        if "localhost" not in location:
            assert isinstance(caught.value, FetchRefusedError)
    assert len(site.requests) == 1


async def test_redirects_come_to_an_end() -> None:
    def respond(path: str) -> bytes:
        left = int(path.strip("/"))
        return moved(f"/{left - 1}") if left else response(b"there")

    async with open_site(respond) as site:
        answer = await fetched(site, "/3")
        assert answer.url.endswith("/0")
        with pytest.raises(FetchRefusedError, match="above 3 redirects"):
            await fetched(site, "/4")


async def test_keys_stay_with_the_site_they_are_for() -> None:
    async with open_site(lambda _: response(b"end")) as end:
        elsewhere = f"http://other.example:{end.port}/"
        pages = {"/": moved("/same"), "/same": moved(elsewhere)}
        async with open_site(lambda path: pages[path]) as site:
            keys = (("Authorization", "Bearer k"), ("X-Key", "k"), ("Cookie", "k=k"))
            public = (("Accept", "text/plain"),)
            await fetched(site, headers=keys + public)
    first, second = (each.lower() for each in site.requests)
    for name in (b"authorization:", b"x-key:", b"cookie:"):
        assert name in first
        assert name in second
        assert name not in end.requests[0].lower()
    assert b"accept: text/plain" in end.requests[0].lower()


async def test_what_was_sent_is_never_redirected() -> None:
    for status in ("301 Moved", "302 Found", "303 See", "307 Again", "308 Again"):
        answer = moved("/x", status)
        async with open_site(lambda _, answer=answer: answer) as site:  # type: ignore[misc]
            with pytest.raises(FetchRefusedError, match="redirects to"):
                await fetched(site, method="POST", body=b"words")
        assert len(site.requests) == 1


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
async def test_a_packed_answer_is_unpacked(pack: Callable[[bytes], bytes]) -> None:
    page = response(pack(b"hello " * 1000), Content_Encoding="gzip")
    async with open_site(lambda _: page) as site:
        answer = await fetched(site)
    assert answer.body == b"hello " * 1000


LARGE = {
    "said": response(b"x", Content_Length=100_001),
    "sent": response(b"x" * 100_001),
    "packed": response(gzip.compress(b"x" * 100_001), Content_Encoding="gzip"),
    "endless": b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 200_000,
}


@pytest.mark.parametrize("kind", LARGE)
async def test_an_answer_above_the_limit_is_refused(kind: str) -> None:
    async with open_site(lambda _: LARGE[kind]) as site:
        with pytest.raises(FetchTooLargeError, match=r"site.example: .*100000 bytes"):
            await fetched(site, config=settings(max_bytes=100_000))


async def test_a_smaller_limit_may_be_asked_for_but_no_larger_one() -> None:
    async with open_site(lambda _: response(b"x" * 100)) as site:
        with pytest.raises(FetchTooLargeError):
            await fetched(site, max_bytes=99)
        with pytest.raises(FetchTooLargeError):
            await fetched(site, config=settings(max_bytes=99), max_bytes=1_000)
        assert len((await fetched(site, max_bytes=100)).body) == 100


BROKEN = {
    "nothing": b"\r\n",
    "garbage": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "cut off": response(b"half", Content_Length=100),
    "cut chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    "not gzip": response(b"hello", Content_Encoding="gzip"),
    "half gzip": response(gzip.compress(b"x" * 99)[:-9], Content_Encoding="gzip"),
    "brotli": response(b"hello", Content_Encoding="br"),
    "twice": response(b"hello", Content_Encoding="gzip, gzip"),
    "huge head": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000,
}


@pytest.mark.parametrize("kind", BROKEN)
async def test_a_broken_answer_says_whose_it_was(kind: str) -> None:
    async with open_site(lambda _: BROKEN[kind]) as site:
        with pytest.raises(FetchFailedError, match=r"^site\.example: .{5}"):
            await fetched(site)


async def test_an_answer_that_does_not_come_is_not_waited_for() -> None:
    async with open_site(lambda _: b"") as site:
        with pytest.raises(FetchTimeoutError, match=r"not done after 0\.2 s"):
            await fetched(site, config=settings(timeout=0.2))
        with pytest.raises(FetchTimeoutError, match=r"not done after 0\.1 s"):
            await fetched(site, timeout=0.1)
        await until(lambda: site.open == 0)


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for the other side to notice."""
    with trio.fail_after(5):
        while not is_so():
            await trio.lowlevel.checkpoint()


async def test_a_cancelled_fetch_leaves_no_connection() -> None:
    async with open_site(lambda _: b"") as site:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fetched, site)
            await until(lambda: len(site.requests) == 1)
            nursery.cancel_scope.cancel()
        await until(lambda: site.open == 0)


async def test_a_name_without_an_address_and_a_closed_port_are_told_apart() -> None:
    fetcher = Fetcher(settings(), resolve=FakeDns({"nobody.example": HERE}).resolve)
    with pytest.raises(FetchFailedError, match=r"there is no host gone\.example"):
        await fetcher.fetch(FetchRequest(url="http://gone.example/"))
    with pytest.raises(FetchFailedError, match=r"nobody\.example: .*"):
        await fetcher.fetch(FetchRequest(url="http://nobody.example:1025/"))


async def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    async with open_site(lambda _: response(b"here")) as site:
        dns = FakeDns({"two": [["127.0.0.2", "127.0.0.1"]]})
        fetcher = Fetcher(settings(allow=("127.0.0.0/8",)), resolve=dns.resolve)
        answer = await fetcher.fetch(FetchRequest(url=f"http://two:{site.port}/"))
    assert answer.body == b"here"


async def test_an_answer_of_very_many_addresses_is_refused() -> None:
    dns = FakeDns({"many": [[f"1.1.1.{each}" for each in range(33)]]})
    with pytest.raises(FetchRefusedError, match="33 addresses"):
        await Fetcher(settings(), resolve=dns.resolve).fetch(
            FetchRequest(url="http://many/")
        )


async def test_only_so_many_are_fetched_at_once() -> None:
    async with open_site(lambda _: b"") as site:
        dns = FakeDns({"site.example": HERE})
        fetcher = Fetcher(settings(max_at_once=2), resolve=dns.resolve)
        request = FetchRequest(url=f"http://site.example:{site.port}/")
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(fetcher.fetch, request)
            await until(lambda: site.open == 2)
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert site.open == 2
            nursery.cancel_scope.cancel()


async def test_one_person_leaves_a_place_to_others() -> None:
    async with (
        open_site(lambda _: b"") as hangs,
        open_site(lambda _: response(b"page")) as site,
        trio.open_nursery() as nursery,
    ):
        dns = FakeDns({"site.example": HERE})
        fetcher = Fetcher(settings(max_at_once=4), resolve=dns.resolve)
        slow = FetchRequest(url=f"http://site.example:{hangs.port}/", owner="web/sam")
        for _ in range(6):
            nursery.start_soon(fetcher.fetch, slow)
        await until(lambda: hangs.open == 3)
        quick = FetchRequest(url=f"http://site.example:{site.port}/", owner="web/kim")
        assert (await fetcher.fetch(quick)).body == b"page"
        assert hangs.open == 3
        nursery.cancel_scope.cancel()


async def test_the_environment_sends_nobody_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_site(lambda _: response(b"proxy")) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        async with open_site(lambda _: response(b"site")) as site:
            assert (await fetched(site)).body == b"site"
    assert proxy.requests == []


async def test_a_client_of_its_own_is_guarded_as_well() -> None:
    async with open_site(lambda _: moved(METADATA)) as site:
        rules_of = Fetcher(settings())._rules
        dns = FakeDns({"site.example": HERE})
        transport = GuardedTransport(rules_of, resolve=dns.resolve)
        async with httpx.AsyncClient(transport=transport, trust_env=False) as client:
            url = f"http://site.example:{site.port}/"
            assert (await client.get(url)).status_code == 302
            with pytest.raises(FetchRefusedError, match="metadata"):
                await client.get(url, follow_redirects=True)
            with pytest.raises(httpx.ConnectError, match=r"no host gone\.example"):
                await client.get("http://gone.example/")
