"""Proves who may ask, for what, and how often."""

from __future__ import annotations

from hypothesis import given, strategies as st

from connectors.web.eliza.keys import RateLimit
from connectors.web.eliza.messages import to_uuid
from connectors.web.eliza.platform import WebConfig, WebKeyConfig
from runtime.secret import Secret
from tests.fakes.web.eliza import ANNA, API, BEN, SAM, ZERO, ZOE, open_web

READER = {"X-API-KEY": "the key of a reader"}
ZOES = {"Authorization": "Bearer the key of zoe"}
BOSS = {"X-API-KEY": "the key of all"}

KEYS = WebConfig(
    port=0,
    api_key=Secret("the key of all"),
    keys={
        "reader": WebKeyConfig(key=Secret("the key of a reader"), scopes=("read",)),
        "zoe": WebKeyConfig(key=Secret("the key of zoe"), entity=ZOE),
        "desk": WebKeyConfig(
            key=Secret("the key of the desk"), scopes=("manage",), channels=("aa*",)
        ),
    },
)


def test_ids_are_made_as_elizaos_makes_them() -> None:
    assert to_uuid("Eliza") == "b850bc30-45f8-0041-a00a-83df46d8555d"
    assert to_uuid(ZERO) == ZERO


@given(
    gaps=st.lists(st.floats(0, 100), max_size=60),
    limit=st.integers(1, 10),
    seconds=st.integers(1, 60),
)
def test_no_window_takes_more_than_its_limit(
    gaps: list[float], limit: int, seconds: int
) -> None:
    rate, now = RateLimit(limit, seconds), 0.0
    taken: dict[float, int] = {}
    for gap in gaps:
        now += gap
        spent = rate.count("client", now)
        assert now < spent.ends_at <= now + seconds
        if not rate.is_over(spent):
            taken[spent.ends_at] = taken.get(spent.ends_at, 0) + 1
    assert all(count <= limit for count in taken.values())


async def test_without_a_key_nobody_is_let_in_and_that_is_on_record() -> None:
    async with open_web(KEYS) as bed:
        path = f"{API}/message-servers"
        for headers in ({}, {"X-API-KEY": ""}, {"X-API-KEY": "placeholder"}):
            refused = await bed.refused("GET", path, headers=headers)
            assert refused == (401, "UNAUTHORIZED")
        assert [each.reason for each in bed.ingress.refused] == ["invalid_api_key"] * 3
        assert (await bed.ask("GET", "/api/server/ping"))["pong"]
        assert (await bed.ask("GET", "/api/system/config"))["requiresAuth"]


async def test_a_key_does_what_its_scopes_say_and_no_more() -> None:
    async with open_web(KEYS) as bed:
        assert await bed.ask("GET", f"{API}/message-servers", headers=READER)
        asked = {"name": "x", "type": "GROUP"}
        for headers in (READER, ZOES):
            refused = await bed.refused(
                "POST", f"{API}/channels", json=asked, headers=headers
            )
            assert refused == (403, "FORBIDDEN")


async def test_a_persons_key_speaks_for_them_and_sees_their_channels_alone() -> None:
    async with open_web(KEYS) as bed:
        bed.client.headers.update(BOSS)
        own, other = await bed.channel(ZOE, ANNA), await bed.channel(SAM, ANNA)
        bed.client.headers.update({"X-API-KEY": "the key of zoe"})
        assert (await bed.say(own, "mine"))["authorId"] == ZOE
        for channel, author in ((own, SAM), (other, ZOE)):
            asked = {"content": "x", "author_id": author}
            path = f"{API}/channels/{channel}/messages"
            assert (await bed.refused("POST", path, json=asked))[0] == 403
        listed = await bed.ask("GET", f"{API}/message-servers/{ZERO}/channels")
        assert [each["id"] for each in listed["channels"]] == [own]


async def test_too_many_requests_are_told_when_to_come_again() -> None:
    async with open_web(WebConfig(port=0, rate_limit=2)) as bed:
        first = await bed.client.get("/api/server/ping")
        assert first.headers["ratelimit-remaining"] == "1"
        await bed.client.get("/api/server/ping")
        refused = await bed.refused("GET", "/api/server/ping")
        assert refused == (429, "RATE_LIMIT_EXCEEDED")


FORWARDED = "x-forwarded-for"


async def test_behind_a_trusted_proxy_each_client_has_a_limit_of_its_own() -> None:
    config = WebConfig(
        port=0, rate_limit=1, trusted_proxies=("127.0.0.0/8", "10.0.0.1")
    )
    async with open_web(config) as bed:
        for client in ("203.0.113.7", "203.0.113.8", "2001:db8::1"):
            # What a client claims itself stands first, and does not count.
            headers = {FORWARDED: f"{client}{client}, 198.51.100.1, {client}, 10.0.0.1"}
            first = await bed.client.get("/api/server/ping", headers=headers)
            assert first.status_code == 200
            refused = await bed.refused("GET", "/api/server/ping", headers=headers)
            assert refused == (429, "RATE_LIMIT_EXCEEDED")


async def test_nobody_elses_word_counts_of_where_a_request_comes_from() -> None:
    for trusted in ((), ("10.0.0.1",)):
        config = WebConfig(port=0, rate_limit=1, trusted_proxies=trusted)
        async with open_web(config) as bed:
            headers = [{FORWARDED: f"203.0.113.{number}"} for number in (7, 8)]
            await bed.client.get("/api/server/ping", headers=headers[0])
            refused = await bed.refused("GET", "/api/server/ping", headers=headers[1])
            assert refused == (429, "RATE_LIMIT_EXCEEDED")


async def test_strangers_are_told_neither_version_nor_uptime() -> None:
    told = {"version", "uptime"}
    async with open_web(KEYS) as bed:
        for path in ("/health", "/api/server/health"):
            assert not told & (await bed.client.get(path)).json().keys()
            known = await bed.client.get(path, headers=READER)
            assert told <= known.json().keys()
    async with open_web() as bed:
        assert told <= (await bed.client.get("/health")).json().keys()


async def test_pages_of_other_servers_may_not_ask_unless_they_are_listed() -> None:
    page = {"Origin": "https://chat.example.org"}
    async with open_web() as bed:
        refused = await bed.refused("GET", f"{API}/message-servers", headers=page)
        assert refused == (403, "FORBIDDEN_ORIGIN")
        foreign = {"Host": "evil.example"}
        refused = await bed.refused("GET", f"{API}/message-servers", headers=foreign)
        assert refused == (403, "FORBIDDEN_HOST")
    listed = WebConfig(port=0, origins=("https://chat.example.org",))
    async with open_web(listed) as bed:
        asked = await bed.client.options(f"{API}/message-servers", headers=page)
        assert asked.status_code == 204
        assert "X-Entity-Id" in asked.headers["access-control-allow-headers"]
        response = await bed.client.get(f"{API}/message-servers", headers=page)
        assert response.headers["access-control-allow-origin"] == page["Origin"]


async def test_bodies_that_are_none_are_refused() -> None:
    async with open_web() as bed:
        path = f"{API}/channels"
        for content, media, expected in (
            (b"{", "application/json", (400, "INVALID_JSON")),
            (b"[1]", "application/json", (400, "INVALID_JSON")),
            (b"a=b", "text/plain", (400, "INVALID_CONTENT_TYPE")),
            (b" " * 3_000_000, "application/json", (413, "REQUEST_TOO_LARGE")),
        ):
            headers = {"content-type": media}
            refused = await bed.refused("POST", path, content=content, headers=headers)
            assert refused == expected


async def test_a_server_with_channels_of_others_is_not_changed() -> None:
    async with open_web(KEYS) as bed:
        asked = {"headers": BOSS, "json": {"name": "theirs"}}
        made = await bed.ask("POST", f"{API}/message-servers", **asked)
        server = made["id"]
        place = f"{API}/message-servers/{server}"
        anna = {"headers": BOSS, "json": {"agentId": ANNA}}
        await bed.ask("POST", f"{place}/agents", **anna)
        theirs = {"name": "in there", "messageServerId": server}
        await bed.ask("POST", f"{API}/channels", headers=BOSS, json=theirs)
        desk = {"headers": {"X-API-KEY": "the key of the desk"}}
        world = f"/api/agents/{ANNA}/worlds/{server}"
        for method, path, body in (
            ("DELETE", f"{place}/agents/{ANNA}", None),
            ("POST", f"{place}/agents", {"agentId": BEN}),
            ("PATCH", world, {"name": "ours"}),
            ("DELETE", place, None),
        ):
            rest = desk | ({"json": body} if body else {})
            refused = await bed.refused(method, path, **rest)
            assert refused == (403, "FORBIDDEN"), path
        there = await bed.ask("GET", f"{place}/agents", headers=BOSS)
        assert there["agents"] == [ANNA]


async def test_a_key_with_a_name_is_the_caller_and_one_without_is_its_address() -> None:
    callers: list[str] = []
    async with open_web(KEYS) as bed:
        bed.client.headers.update(BOSS)
        channel = await bed.channel(ZOE, ANNA)
        for key in (ZOES, BOSS):
            bed.client.headers.pop("X-API-KEY", None)
            bed.client.headers.pop("Authorization", None)
            bed.client.headers.update(key)
            await bed.say(channel, "hello")
            callers.append((await bed.ingress.next()).caller)
    named, whole = callers
    assert named == "key zoe"
    assert whole.startswith("address ")
    assert "127" not in whole
