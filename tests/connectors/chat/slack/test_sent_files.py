"""Files that agents send on Slack: shared with their words, and known again."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from actors.errors import DeliveryBusyError, DeliveryRefusedError, DeliveryUnknownError
from actors.messages.inbound import Address
from connectors.asyncio_bridge.bridge import Bridge
from connectors.chat.requests import BusyError, LostError, RefusedError
from connectors.chat.slack.sdk import SdkWire
from connectors.chat.slack.senders import SETTLES
from tests.fakes.media import PNG
from tests.fakes.slack.replies import Reply, refusal
from tests.fakes.slack.server import serving
from tests.support.chat.slack_bed import CREW, ZOE, SlackBed, delivery

OFFER, SHARE = "files.getUploadURLExternal", "files.completeUploadExternal"
FAULTS = ((413, RefusedError), (429, BusyError), (500, LostError), (302, LostError))
SLOW = Reply(429, {"ok": False, "error": "ratelimited"}, {"retry-after": "7"})
SCOPE = Reply(200, {"ok": False, "error": "missing_scope", "needed": "files:write"}, {})


async def test_a_file_stands_in_its_thread_with_what_is_said_of_it() -> None:
    bed = SlackBed()
    file = bed.blobs.sent(PNG, "größe 1.png")
    async with bed.listening() as slack:
        asked = slack.say(CREW, ZOE, "the chart?")
        where = Address("slack", CREW, asked)
        said = delivery("**look** <!here>", address=where, file=file)
        receipt = await bed.transport.deliver(said)
        assert await bed.transport.deliver(said) == receipt
        assert await bed.make_another_look_up(said) == receipt
    (message,) = slack.said(CREW)
    assert receipt == f"{CREW}/{message['ts']}"
    assert message["thread_ts"] == asked
    assert message["text"].startswith("*look*")
    assert "<!here>" not in message["text"]
    assert message["files"][0]["title"] == "größe 1.png"
    assert slack.uploads.brought == [("größe 1.png", PNG)]
    assert [each.text for each in bed.ingress.accepted] == ["the chart?"]


async def test_a_file_without_words_and_one_that_another_app_brings() -> None:
    bed = SlackBed("anna")
    async with bed.listening() as slack:
        file = bed.blobs.sent(PNG)
        await bed.transport.deliver(delivery("", file=file))
        await bed.transport.deliver(delivery("", "ben", file=file))
    forms = [form for method, _, form in slack.asked if method == SHARE]
    assert "initial_comment" not in forms[0]
    assert "thread_ts" not in forms[0]
    assert forms[1]["initial_comment"] == "ben:"


@pytest.mark.parametrize(
    ("method", "fault", "error", "words"),
    [
        (OFFER, SLOW, DeliveryBusyError, "ratelimited"),
        (OFFER, Reply(503, {}), DeliveryBusyError, "HTTP 503"),
        (OFFER, LostError("reset"), DeliveryBusyError, "reset"),
        (OFFER, Reply(200, {"ok": True}), DeliveryBusyError, "no address"),
        (OFFER, SCOPE, DeliveryRefusedError, "scope files:write and install"),
        (SHARE, SLOW, DeliveryBusyError, "ratelimited"),
        (SHARE, Reply(500, {}), DeliveryUnknownError, "HTTP 500"),
        (SHARE, LostError("reset"), DeliveryUnknownError, "reset"),
        (SHARE, refusal("not_in_channel"), DeliveryRefusedError, "not_in_channel"),
        (SHARE, refusal("invalid_auth"), DeliveryBusyError, "not let in"),
    ],
)
async def test_what_fails_says_whether_it_may_stand_there(
    method: str, fault: Reply | Exception, error: type[Exception], words: str
) -> None:
    bed = SlackBed()
    said = delivery("look", file=bed.blobs.sent(PNG))
    async with bed.listening() as slack:
        slack.faults.append((method, fault))
        with pytest.raises(error, match=words) as caught:
            await bed.transport.deliver(said)
        assert slack.said(CREW) == []
        if fault is SLOW:
            assert isinstance(caught.value, DeliveryBusyError)
            assert caught.value.retry_after == 7.0
        await bed.transport.deliver(said)
        assert slack.uploads.brought == [("a.txt", PNG)]


@pytest.mark.parametrize("fault", [429, 500, 503, LostError("reset"), BusyError("no")])
async def test_bytes_that_do_not_arrive_are_brought_again(
    fault: int | Exception,
) -> None:
    bed = SlackBed()
    said = delivery("look", file=bed.blobs.sent(PNG))
    async with bed.listening() as slack:
        slack.uploads.faults.append(fault)
        with pytest.raises(DeliveryBusyError):
            await bed.transport.deliver(said)
        assert SHARE not in [method for method, _, _ in slack.asked]
        await bed.transport.deliver(said)
        assert slack.uploads.brought == [("a.txt", PNG)]


async def test_a_file_that_was_shared_though_the_answer_got_lost_is_found() -> None:
    bed = SlackBed()
    first = delivery("look", id="first", file=bed.blobs.sent(PNG))
    second = delivery("again", id="second", file=first.file)
    async with bed.listening() as slack:
        receipt = await bed.transport.deliver(first)
        slack.after.append((SHARE, LostError("reset")))
        with pytest.raises(DeliveryUnknownError):
            await bed.transport.deliver(second)
        found = await bed.transport.look_up(second)
        assert found not in {None, receipt}
        assert found == f"{CREW}/{slack.said(CREW)[-1]['ts']}"


@pytest.mark.parametrize("is_new", [False, True])
async def test_a_file_is_only_missing_when_it_had_time_to_be_shared(
    autojump_clock: trio.testing.MockClock, *, is_new: bool
) -> None:
    del autojump_clock
    bed = SlackBed()
    said = delivery("look", file=bed.blobs.sent(PNG))
    async with bed.listening() as slack:
        if not is_new:
            slack.faults.append((SHARE, LostError("reset")))
            with pytest.raises(DeliveryUnknownError):
                await bed.transport.deliver(said)
        with pytest.raises(DeliveryBusyError) as caught:
            await bed.transport.look_up(said)
        assert caught.value.retry_after is not None
        assert 0 < caught.value.retry_after <= SETTLES
        await trio.sleep(caught.value.retry_after)
        assert await bed.transport.look_up(said) is None
        slack.say(CREW, ZOE, "mine", files=[{"id": "F1", "title": "a.txt"}])
        assert await bed.transport.look_up(said) is None


@pytest.mark.parametrize("fault", [None, refusal("missing_scope"), Reply(429, {})])
async def test_a_message_that_slack_does_not_name_is_known_by_its_file(
    autojump_clock: trio.testing.MockClock, fault: Reply | None
) -> None:
    del autojump_clock
    bed = SlackBed()
    said = delivery("look", file=bed.blobs.sent(PNG))
    async with bed.listening() as slack:
        slack.uploads.is_slow = fault is None
        if fault is not None:
            slack.faults.append(("files.info", fault))
        receipt = await bed.transport.deliver(said)
        assert receipt.removeprefix(f"{CREW}/") in slack.uploads.uploads
        slack.uploads.settle()
        other = delivery("again", id="other", file=said.file)
        with pytest.raises(DeliveryBusyError):
            await bed.transport.look_up(other)


@asynccontextmanager
async def served(bed: SlackBed) -> AsyncGenerator[tuple[SdkWire, str]]:
    bridge = Bridge()
    await bridge.start()
    try:
        async with serving(bed.slack, bridge) as server:
            yield SdkWire(bridge, f"{server.url}/api/", 5.0, 15.0), server.url
    finally:
        await bridge.aclose()


async def test_bytes_go_out_whole_through_the_sdk() -> None:
    bed = SlackBed("anna")
    content = PNG * 20_000
    said = delivery("look", file=bed.blobs.sent(content, "a.png"))
    async with served(bed) as (wire, _), trio.open_nursery() as nursery:
        bed.transport = bed.make(wire)
        nursery.start_soon(bed.transport.listen, bed.ingress)
        with trio.fail_after(20):
            while bed.transport.trouble:  # noqa: ASYNC110  the transport tells nobody
                await trio.sleep(0.01)
            receipt = await bed.transport.deliver(said)
            assert await bed.make_another_look_up(said) == receipt
        nursery.cancel_scope.cancel()
    assert bed.slack.uploads.brought == [("a.png", content)]


async def test_refusals_of_an_address_are_told_apart() -> None:
    bed = SlackBed("anna")
    bed.blobs.sent(PNG)
    (path,) = bed.blobs.files()
    async with served(bed) as (wire, url), wire.open() as line:
        for fault, error in FAULTS:
            bed.slack.uploads.faults.append(fault)
            with pytest.raises(error):
                await line.put(f"{url}/upload/F1", path, 5.0)
        with pytest.raises(LostError):
            await line.put(f"{url}/upload/F1", path / "gone", 5.0)


async def test_after_a_restart_a_file_that_was_shared_is_not_shared_again() -> None:
    bed = SlackBed()
    said = delivery("look", file=bed.blobs.sent(PNG))
    async with bed.listening():
        receipt = await bed.transport.deliver(said)
    bed.transport = bed.make()
    async with bed.listening() as slack:
        slack.say(CREW, ZOE, "mine", files=[{"id": "F1", "title": "a.txt"}])
        assert await bed.transport.look_up(said) == receipt
        other = delivery("look", id="x", file=bed.blobs.sent(PNG, "b.png"))
        with pytest.raises(DeliveryBusyError, match="still be sharing"):
            await bed.transport.look_up(other)
