"""Proves that what was written though nobody waited for it is told, and once."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from actors.messages.deliveries import Delivery
from actors.messages.inbound import Address
from connectors.web.eliza.keys import ApiCaller
from connectors.web.eliza.messages import (
    ZERO,
    ChannelEvent,
    ElizaChannel,
    ElizaMessage,
    eliza_history,
    to_uuid,
)
from connectors.web.eliza.platform import WebConfig
from connectors.web.eliza.services.channels import Channels
from connectors.web.eliza.services.messages import ChannelMessages, NewMessage
from connectors.web.history import ConnectorStore
from runtime.clock import SystemClock
from tests.fakes.chat.ingress import FakeIngress
from tests.fakes.store.queued_store import QueuedStore

CHANNEL = to_uuid("lobby")
ANSWER = Delivery(
    id="1:0",
    correlation_id="asked",
    reply_id="1",
    address=Address("web", CHANNEL),
    agent="anna",
    text="hello",
)
ASKED = ElizaMessage(
    id=to_uuid("m1"),
    channel=CHANNEL,
    server=ZERO,
    author=to_uuid("Zoe"),
    content="hi",
    at=0,
)
SAID = NewMessage(message=ASKED, inbound_id="m1")


async def test_a_message_is_announced_before_it_is_complete() -> None:
    store, told = QueuedStore(), list[ChannelEvent]()
    room = ConnectorStore(store, SystemClock(), "web")
    history = eliza_history(room)
    anna = to_uuid("anna")
    channels = Channels(room, WebConfig(), lambda: {"anna": anna}, history, told.append)
    participants = (to_uuid("Zoe"), to_uuid("Sam"), anna)
    lobby = ElizaChannel(
        id=CHANNEL, server=ZERO, name="lobby", type="GROUP", participants=participants
    )
    await channels.make(ApiCaller(""), lobby)
    speech = ChannelMessages("web", channels, history, told.append)
    speech.ingress = ingress = FakeIngress()
    told.clear()
    store.is_open = False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(speech.post, ApiCaller(""), SAID)
        inbound = await ingress.next()
        nursery.start_soon(speech.settled, inbound, "dropped:not_addressed")
        await trio.testing.wait_all_tasks_blocked()
        store.open()
    kinds = [each.event for each in told]
    assert kinds == ["messageBroadcast", "messageComplete", "controlMessage"]


@pytest.mark.parametrize("is_written_first", [True, False])
async def test_an_answer_that_was_cut_off_is_told_when_it_comes_again(
    *, is_written_first: bool
) -> None:
    store, told = QueuedStore(), list[ChannelEvent]()
    room = ConnectorStore(store, SystemClock(), "web")
    history = eliza_history(room)
    channels = Channels(
        room, WebConfig(), lambda: {"anna": "anna"}, history, told.append
    )
    lobby = ElizaChannel(id=CHANNEL, server=ZERO, name="lobby", type="GROUP")
    await channels.make(ApiCaller(""), lobby)
    speech = ChannelMessages("web", channels, history, told.append)
    told.clear()
    store.is_open = False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(speech.answer, ANSWER)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    if is_written_first:
        store.open()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(speech.answer, ANSWER)
        await trio.testing.wait_all_tasks_blocked()
        store.open()
    await speech.answer(ANSWER)
    assert [each.event for each in told] == ["messageBroadcast"]
    assert [each.content for each in await history.page(CHANNEL)] == ["hello"]
