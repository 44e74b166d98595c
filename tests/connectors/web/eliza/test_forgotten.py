"""Proves that agents forget what is deleted where it was said (X6)."""

from __future__ import annotations

from typing import Any

import msgspec

from actors import names
from actors.journal.commits import as_accept
from actors.memory import scopes
from actors.messages.inbound import Address
from actors.protocol import DropConversation
from connectors.web.eliza.messages import own_id
from runtime.actor.messages import Keyed
from runtime.store.facts import SaveFact
from runtime.store.rows import Append, Commit, NewEvent
from tests.fakes.web.eliza import ANNA, API, BEN, SAM, ZOE, WebBed, open_web

MEMORIES = f"/api/memory/{ANNA}/memories"


async def learn(bed: WebBed, scope: str, text: str, **origin: str) -> None:
    """Have Anna take note of something."""
    services = bed.company.services
    fact = SaveFact(
        id=services.ids.new(),
        agent="anna",
        scope=scope,
        part=1,
        kind="fact",
        category="user_preference",
        text=text,
        provenance=msgspec.json.encode(origin).decode(),
    )
    at = services.clock.wall()
    await services.store.commit(Commit(at=at, facts=(fact,)))


async def known(bed: WebBed, channel: str) -> list[str]:
    params = {"tableName": "memories", "roomId": channel}
    found = (await bed.ask("GET", MEMORIES, params=params))["memories"]
    return sorted(each["content"]["text"] for each in found)


async def converse(bed: WebBed, channel: str, sender: str = ZOE) -> Keyed:
    """Have Anna have a conversation; gives what ends it."""
    key = f"anna/web/{channel}//{sender}"
    events = (NewEvent("exchanged", b"{}"),)
    append = Append(stream=key, expected=0, part=1, events=events)
    await bed.company.store.commit(Commit(at=1.0, appends=(append,)))
    return Keyed(key, DropConversation())


def of_chat(channel: str) -> str:
    return scopes.chat(Address("web", channel))


def told(bed: WebBed, agent: str = "anna") -> list[Any]:
    found: list[Any] = bed.company.actors[names.sessions(agent)].messages
    return found


async def test_what_came_of_a_message_is_forgotten_with_it() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA)
        said = await bed.say(channel, "I like tea")
        inbound = await bed.ingress.next()
        accept = as_accept(inbound, bed.company.services.clock.wall())
        await bed.company.store.commit(Commit(at=1.0, accepts=(accept,)))
        person = scopes.person(f"web/{ZOE}")
        await learn(bed, person, "likes tea", chat=channel, message=inbound.id)
        await learn(bed, person, "likes cats", chat=channel, message="another")
        await bed.ask("DELETE", f"{API}/channels/{channel}/messages/{said['id']}")
        assert await known(bed, channel) == ["likes cats"]
        assert told(bed) == []  # the rest of the conversation goes on


async def test_a_channel_that_is_cleared_is_forgotten_and_nothing_else() -> None:
    async with open_web() as bed:
        channel, other = await bed.channel(ZOE, ANNA), await bed.channel(SAM, ANNA)
        end = await converse(bed, channel)
        await converse(bed, other, SAM)
        person = scopes.person(f"web/{ZOE}")
        await learn(bed, of_chat(channel), "of this chat")
        await learn(bed, of_chat(other), "of another chat")
        await learn(bed, person, "told here", chat=channel)
        await learn(bed, person, "told elsewhere", chat="far away")
        await bed.ask("DELETE", f"{API}/channels/{channel}/messages")
        assert await known(bed, channel) == ["told elsewhere"]
        assert await known(bed, other) == ["of another chat"]
        assert told(bed) == [end]


async def test_a_channel_that_is_deleted_is_forgotten_too() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA, BEN)
        end = await converse(bed, channel, "")
        await bed.ask("DELETE", f"{API}/channels/{channel}")
        assert told(bed) == [end]
        assert told(bed, "ben") == []  # which has had none


async def test_an_agent_that_is_not_up_is_not_passed_over() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA)
        await bed.say(channel, "hello")
        del bed.company.actors[names.sessions("anna")]
        path = f"{API}/channels/{channel}"
        assert await bed.refused("DELETE", path) == (503, "UNAVAILABLE")
        assert len(await bed.messages(channel)) == 1


async def test_each_member_of_a_room_is_forgotten_where_each_has_a_talk() -> None:
    async with open_web(session_scope="sender") as bed:
        channel = await bed.channel(ZOE, SAM, ANNA)
        ends = [await converse(bed, channel, each) for each in (ZOE, SAM)]
        own = scopes.chat(Address("web", channel), ZOE)
        await learn(bed, own, "zoe said it here")
        room = own_id(ANNA, channel)
        cleared = await bed.ask("DELETE", f"{MEMORIES}/all/{room}")
        assert cleared["deleted"] == 1
        assert told(bed) == ends
