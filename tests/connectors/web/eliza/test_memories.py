"""Proves what is shown of agents' memories, to whom, and what is changed of them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from actors import names
from actors.memory import scopes
from actors.messages.inbound import Address
from actors.protocol import DropConversation
from connectors.web.eliza.messages import as_ulid, as_uuid, own_id
from connectors.web.eliza.platform import WebConfig, WebKeyConfig
from runtime.actor.messages import Keyed
from runtime.clock import SystemClock
from runtime.ids import IdSource
from runtime.secret import Secret
from runtime.store.facts import SaveFact
from runtime.store.rows import Append, Commit, NewEvent
from tests.fakes.web.backstage import SECRET, Told
from tests.fakes.web.eliza import ANNA, BEN, SAM, ZERO, ZOE, WebBed, open_web

KEYS = WebConfig(
    port=0,
    api_key=Secret("the key of all"),
    keys={
        "zoe": WebKeyConfig(key=Secret("the key of zoe"), entity=ZOE),
        "manager": WebKeyConfig(
            key=Secret("the key of zoe, who manages"),
            scopes=("read", "manage"),
            entity=ZOE,
        ),
        "some": WebKeyConfig(key=Secret("the key of some"), channels=("none-*",)),
        "reader": WebKeyConfig(key=Secret("the key of a reader"), scopes=("read",)),
    },
)
BOSS = {"X-API-KEY": "the key of all"}
ZOES = {"X-API-KEY": "the key of zoe"}
MANAGERS = {"X-API-KEY": "the key of zoe, who manages"}
SOMES = {"X-API-KEY": "the key of some"}
READER = {"X-API-KEY": "the key of a reader"}


async def know(bed: WebBed, scope: str, text: str, **more: Any) -> str:
    """Have Anna know something; gives its id as clients see it."""
    services = bed.company.services
    fact_id = services.ids.new()
    fact = SaveFact(
        id=fact_id,
        agent="anna",
        scope=scope,
        part=1,
        kind=more.pop("kind", "fact"),
        category=more.pop("category", "user_preference"),
        text=text,
        **more,
    )
    at = services.clock.wall()
    await services.store.commit(Commit(at=at, facts=(fact,)))
    return as_uuid(fact_id)


async def memories(bed: WebBed, **rest: Any) -> list[str]:
    """Read what Anna remembers."""
    path = f"/api/memory/{ANNA}/memories"
    found = (await bed.ask("GET", path, **rest))["memories"]
    return [each["content"]["text"] for each in found]


def of_chat(channel: str) -> str:
    return scopes.chat(Address("web", channel))


@given(st.integers(0, (1 << 128) - 1))
def test_ids_of_ours_are_named_as_uuids_and_back(number: int) -> None:
    uuid = str(UUID(int=number))
    assert as_uuid(as_ulid(uuid)) == uuid
    ulid = IdSource(SystemClock()).new()
    assert as_ulid(as_uuid(ulid)) == ulid


async def test_what_was_said_is_remembered_under_the_agents_own_ids() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA)
        said = await bed.say(channel, "hello")
        path = f"/api/memory/{ANNA}/rooms/{own_id(ANNA, channel)}/memories"
        (found,) = (await bed.ask("GET", path))["memories"]
        assert found["id"] == own_id(ANNA, said["id"])
        assert found["entityId"] == own_id(ANNA, ZOE)
        assert found["roomId"] == own_id(ANNA, channel)
        assert found["worldId"] == own_id(ANNA, ZERO)
        assert found["metadata"]["sourceId"] == said["id"]
        assert found["createdAt"] == said["created_at"]
        assert await memories(bed, params={"channelId": channel}) == ["hello"]
        assert await memories(bed, params={"search": "HELL", "limit": 1}) == ["hello"]
        assert await memories(bed, params={"before": found["createdAt"]}) == []
        other = await bed.ask("GET", f"/api/memory/{BEN}/memories")
        assert other["memories"] == []


async def test_facts_are_shown_to_whom_they_may_be() -> None:
    async with open_web(KEYS) as bed:
        bed.client.headers.update(BOSS)
        own, other = await bed.channel(ZOE, ANNA), await bed.channel(SAM, ANNA)
        await know(bed, of_chat(own), "here")
        await know(bed, of_chat(other), "there")
        await know(bed, scopes.person(f"web/{ZOE}"), "zoe told it in private")
        await know(bed, scopes.person(f"web/{SAM}"), "sam told it in private")
        await know(bed, scopes.AGENT, "always")
        facts = {"tableName": "facts"}
        # Sorted: of what came in one millisecond none is the newest.
        zoes = ["here", "zoe told it in private"]
        assert len(await memories(bed, params=facts)) == 5
        shown = await memories(bed, params=facts, headers=ZOES)
        assert sorted(shown) == zoes
        assert await memories(bed, params=facts, headers=SOMES) == []
        both = await bed.refused(
            "GET",
            f"/api/memory/{ANNA}/rooms/{other}/memories",
            headers=ZOES,
        )
        assert both == (403, "FORBIDDEN")


async def test_who_shares_a_room_does_not_share_what_was_told_in_private() -> None:
    async with open_web(KEYS) as bed:
        bed.client.headers.update(BOSS)
        room = await bed.channel(ZOE, SAM, ANNA)
        sams = await know(bed, scopes.person(f"web/{SAM}"), "sam told it in private")
        await know(bed, of_chat(room), "said in the room")
        params = {"tableName": "memories", "roomId": room}
        assert len(await memories(bed, params=params)) == 2
        shown = await memories(bed, params=params, headers=ZOES)
        assert shown == ["said in the room"]
        path = f"/api/memory/{ANNA}/memories/{sams}"
        refused = await bed.refused("DELETE", path, headers=MANAGERS)
        assert refused == (404, "MEMORY_NOT_FOUND")


async def test_a_channel_that_a_key_may_not_see_hides_its_memory() -> None:
    async with open_web(KEYS) as bed:
        bed.client.headers.update(BOSS)
        hidden = await bed.channel(ZOE, ANNA)
        await bed.say(hidden, "for us alone")
        assert await memories(bed, headers=SOMES) == []
        rooms = await bed.ask("GET", f"/api/memory/{ANNA}/rooms", headers=SOMES)
        assert rooms["rooms"] == []
        path = f"/api/memory/{ANNA}/rooms/{hidden}"
        assert (await bed.refused("GET", path, headers=SOMES))[0] == 403


async def test_a_fact_is_changed_without_secrets_and_the_memory_learns_of_it() -> None:
    memory = Told()
    async with open_web(actors={names.memory("anna"): memory}) as bed:
        channel = await bed.channel(ZOE, ANNA)
        fact_id = await know(bed, of_chat(channel), "likes tea")
        path = f"/api/memory/{ANNA}/memories/{fact_id}"
        asked = {"content": {"text": f"likes coffee {SECRET}"}}
        changed = await bed.ask("PATCH", path, json=asked)
        assert changed["id"] == fact_id
        assert changed["content"]["text"] == "likes coffee ***"
        params = {"type": "fact", "roomId": channel}
        assert await memories(bed, params=params) == ["likes coffee ***"]
        assert memory.messages[0].changes[0].text == "likes coffee ***"
        assert (await bed.ask("DELETE", path))["message"]
        assert await memories(bed, params=params) == []
        assert (await bed.refused("DELETE", path))[1] == "MEMORY_NOT_FOUND"


async def test_what_was_said_is_not_changed_by_way_of_a_memory() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA)
        said = await bed.say(channel, "hello")
        path = f"/api/memory/{ANNA}/memories/{own_id(ANNA, said['id'])}"
        refused = await bed.refused("DELETE", path)
        assert refused == (409, "MEMORY_IS_HISTORY")
        refused = await bed.refused("PATCH", path, json={"content": "other"})
        assert refused == (409, "MEMORY_IS_HISTORY")


@pytest.mark.parametrize(
    ("way", "path", "body"),
    [
        ("GET", f"/api/memory/{ANNA}/memories?tableName=secrets", None),
        ("GET", f"/api/memory/{ANNA}/memories?limit=many", None),
        ("GET", f"/api/memory/{ANNA}/memories?before=soon", None),
        ("GET", f"/api/memory/{ANNA}/memories?roomId=7", None),
        ("PATCH", f"/api/memory/{ANNA}/memories/7", {"content": "x"}),
        ("PATCH", f"/api/memory/{ANNA}/memories/{ZERO}", {"metadata": {"a": 1}}),
        ("PATCH", f"/api/memory/{ANNA}/memories/{ZERO}", {"content": {"text": 7}}),
        ("POST", f"/api/memory/{ANNA}/rooms", {"type": "DM"}),
        ("POST", f"/api/agents/{ANNA}/worlds", {}),
    ],
)
async def test_what_cannot_be_read_names_its_field(
    way: str, path: str, body: Any
) -> None:
    async with open_web() as bed:
        response = await bed.client.request(way, path, json=body)
        error = response.json()["error"]
        assert (response.status_code, error["code"]) == (400, "VALIDATION_ERROR")
        assert error["details"].startswith("field: ")


async def test_readers_change_nothing() -> None:
    async with open_web(KEYS) as bed:
        for way, path in (
            ("PATCH", f"/api/memory/{ANNA}/memories/{ZERO}"),
            ("DELETE", f"/api/memory/{ANNA}/memories/{ZERO}"),
            ("DELETE", f"/api/memory/{ANNA}/memories"),
            ("DELETE", f"/api/memory/{ANNA}/memories/all/{ZERO}"),
            ("POST", f"/api/memory/{ANNA}/rooms"),
            ("POST", f"/api/memory/groups/{ZERO}"),
            ("DELETE", f"/api/memory/groups/{ZERO}"),
            ("POST", f"/api/agents/{ANNA}/worlds"),
        ):
            refused = await bed.refused(way, path, headers=READER)
            assert refused == (403, "FORBIDDEN")


async def test_a_room_that_is_forgotten_is_begun_anew() -> None:
    sessions = Told()
    async with open_web(actors={names.sessions("anna"): sessions}) as bed:
        channel = await bed.channel(ZOE, ANNA)
        await bed.say(channel, "hello")
        await know(bed, of_chat(channel), "likes tea")
        key = f"anna/web/{channel}//{ZOE}"
        event = Append(
            stream=key, expected=0, part=1, events=(NewEvent("exchanged", b"{}"),)
        )
        store = bed.company.store
        await store.commit(Commit(at=1.0, appends=(event,)))
        path = f"/api/memory/{ANNA}/memories/all/{own_id(ANNA, channel)}"
        assert (await bed.ask("DELETE", path))["deleted"] == 2
        assert sessions.messages == [Keyed(key, DropConversation())]
        assert await memories(bed, params={"tableName": "memories"}) == []
        assert await memories(bed) == []
        # It was said all the same; and what is said from now on is remembered.
        assert len(await bed.messages(channel)) == 1
        await bed.say(channel, "anew")
        assert await memories(bed) == ["anew"]
