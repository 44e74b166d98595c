"""However Slack goes away: no message is lost, and none comes twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock

from actors.errors import OverloadedError
from connectors.chat.inbound import MOST_WAITING
from connectors.chat.requests import LostError
from runtime.errors import StoreUnavailableError
from tests.fakes.slack.replies import Reply, refusal
from tests.fakes.slack.workspace import App
from tests.support.chat.slack_bed import ANNA, CREW, ZOE, SlackBed

OPEN, HISTORY = "apps.connections.open", "conversations.history"


def app_of(bed: SlackBed) -> App:
    return bed.slack.apps[ANNA]


async def said(bed: SlackBed, text: str, **more: object) -> None:
    bed.slack.say(CREW, ZOE, text, **more)
    await trio.lowlevel.checkpoint()


async def heard(bed: SlackBed, text: str) -> None:
    await bed.wait(lambda: text in bed.texts(), within=4_000)


def drop(bed: SlackBed) -> None:
    for link in [*app_of(bed).links]:
        link.drop()


async def a_reset(bed: SlackBed) -> None:
    drop(bed)
    await said(bed, "two")


async def lost_events(bed: SlackBed) -> None:
    bed.slack.is_deaf = True
    drop(bed)
    await said(bed, "two")
    bed.slack.is_deaf = False


async def a_half_open_connection(bed: SlackBed) -> None:
    bed.slack.is_deaf = True
    await said(bed, "two")
    bed.slack.is_deaf = False
    for link in [*app_of(bed).links]:
        link.drop(TimeoutError("no pong"))


async def a_warning(bed: SlackBed) -> None:
    link = app_of(bed).links[-1]
    link.send({"type": "disconnect", "reason": "warning"})
    await said(bed, "two")
    await heard(bed, "two")
    link.drop()


async def a_refresh(bed: SlackBed) -> None:
    link = app_of(bed).links[-1]
    link.send({"type": "disconnect", "reason": "refresh_requested"})
    link.drop()
    await said(bed, "two")


async def a_rate_limit(bed: SlackBed) -> None:
    limited = Reply(429, {"ok": False, "error": "ratelimited"}, {"retry-after": "30"})
    bed.slack.faults.extend([(OPEN, limited), (OPEN, limited)])
    await lost_events(bed)


async def server_errors(bed: SlackBed) -> None:
    for _ in range(3):
        bed.slack.faults.append((OPEN, Reply(503, {})))
    bed.slack.faults.append((HISTORY, Reply(500, {})))
    await lost_events(bed)


async def no_route(bed: SlackBed) -> None:
    bed.slack.faults.append((OPEN, LostError("reset")))
    bed.slack.faults.append((HISTORY, refusal("ratelimited")))
    await lost_events(bed)


async def bad_json(bed: SlackBed) -> None:
    link = app_of(bed).links[-1]
    for odd in ("{", "[]", '{"type": 7}', '{"envelope_id": "x", "type": "y"}', "null"):
        link.send(odd)
    link.send({"type": "events_api", "envelope_id": "odd", "payload": {"event": 3}})
    await said(bed, "two")


async def a_lost_acknowledgement(bed: SlackBed) -> None:
    bed.ingress.gate = trio.Event()
    await said(bed, "two")
    await bed.ingress.is_asked.wait()
    drop(bed)
    bed.ingress.gate.set()
    bed.ingress.gate = None


async def a_redelivery(bed: SlackBed) -> None:
    await said(bed, "two")
    for _ in range(3):
        bed.slack.tell(CREW, bed.slack.channels[CREW][-1], "app_mention")
        bed.slack.send_again()


async def a_store_that_is_away(bed: SlackBed) -> None:
    bed.ingress.error = StoreUnavailableError("disk full")
    await said(bed, "two")
    drop(bed)
    await trio.sleep(10)
    bed.ingress.error = OverloadedError("too much")
    await trio.sleep(10)
    bed.ingress.error = None


async def socket_mode_switched_off(bed: SlackBed) -> None:
    bed.slack.is_deaf = True
    app_of(bed).links[-1].send({"type": "disconnect", "reason": "link_disabled"})
    bed.slack.faults.extend([(OPEN, refusal("socket_mode_disabled"))] * 2)
    await said(bed, "two")
    await trio.sleep(60)
    bed.slack.is_deaf = False


SCRIPTS = (
    a_reset,
    lost_events,
    a_half_open_connection,
    a_warning,
    a_refresh,
    a_rate_limit,
    server_errors,
    no_route,
    bad_json,
    a_lost_acknowledgement,
    a_redelivery,
    a_store_that_is_away,
    socket_mode_switched_off,
)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda each: each.__name__)
async def test_nothing_is_lost_and_nothing_comes_twice(
    script: Callable[[SlackBed], Awaitable[None]], autojump_clock: MockClock
) -> None:
    del autojump_clock
    bed = SlackBed("anna")
    async with bed.listening():
        await said(bed, "one")
        await heard(bed, "one")
        await script(bed)
        await heard(bed, "two")
        await said(bed, "three")
        await heard(bed, "three")
        await trio.sleep(120)
        assert bed.texts() == ["one", "two", "three"]
        assert app_of(bed).waiting == []
        assert bed.transport.trouble == ""


async def test_a_new_process_goes_on_where_the_old_one_ended(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = SlackBed("anna")
    old = bed.slack.add(CREW, {"user": ZOE, "text": "before the first start"})
    bed.bookmarks.tokens["T1-UANNA"] = old["ts"]
    async with bed.listening():
        await said(bed, "one")
        await heard(bed, "one")
        await trio.sleep(1)
    bed.slack.is_deaf = True
    await said(bed, "two")
    parent = bed.slack.channels[CREW][1]["ts"]
    await said(bed, "in a thread", thread_ts=parent)
    for number in range(150):
        await said(bed, f"more {number}")
    bed.slack.is_deaf = False
    bed.transport = bed.make()
    async with bed.listening():
        await heard(bed, "more 149")
        await said(bed, "three")
        await heard(bed, "three")
    more = [f"more {number}" for number in range(150)]
    assert bed.texts() == ["one", "two", "in a thread", *more, "three"]
    assert (
        bed.counted("gaps_total", connector="slack", account="anna", outcome="filled")
        == 1
    )


async def test_a_token_that_is_refused_once_is_tried_again_and_nothing_is_lost(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = SlackBed("anna")
    async with bed.listening():
        bed.slack.faults.append((OPEN, refusal("token_revoked")))
        await lost_events(bed)
        await bed.wait(lambda: "token_revoked" in bed.transport.trouble)
        await heard(bed, "two")
        await trio.sleep(1)
    assert bed.texts() == ["two"]


async def test_a_gap_that_is_too_long_is_counted_as_open(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = SlackBed("anna", backfill=100)
    async with bed.listening():
        bed.slack.is_deaf = True
        for number in range(250):
            await said(bed, f"{number}")
        bed.slack.is_deaf = False
        drop(bed)
        await heard(bed, "249")
        await trio.sleep(1)
    assert bed.texts() == [str(number) for number in range(150, 250)]
    assert (
        bed.counted("gaps_total", connector="slack", account="anna", outcome="open")
        == 1
    )


async def test_what_was_one_too_many_is_fetched_when_there_is_room_again(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = SlackBed("anna", backfill=2_000)
    async with bed.listening():
        bed.ingress.error = StoreUnavailableError("disk full")
        for number in range(MOST_WAITING + 50):
            await said(bed, f"{number}")
        await trio.sleep(10)
        bed.ingress.error = None
        # Slack tries it three times and then no more.
        await heard(bed, f"{MOST_WAITING + 49}")
        await trio.sleep(1)
    assert bed.texts() == [f"{number}" for number in range(MOST_WAITING + 50)]


async def test_what_was_one_too_many_and_is_gone_holds_nothing_up(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = SlackBed("anna", backfill=2_000)
    async with bed.listening():
        bed.ingress.error = StoreUnavailableError("disk full")
        for number in range(MOST_WAITING + 1):
            bed.slack.say(CREW, ZOE, f"{number}")
        bed.slack.channels[CREW].pop()  # deleted at once
        await trio.sleep(10)
        app_of(bed).waiting.clear()
        bed.ingress.error = None
        await heard(bed, f"{MOST_WAITING - 1}")
        await said(bed, "last")
        await heard(bed, "last")
        await trio.sleep(1)
        newest = bed.slack.channels[CREW][-1]["ts"]
        assert bed.bookmarks.tokens["T1-UANNA"] == newest
    assert bed.texts() == [*map(str, range(MOST_WAITING)), "last"]
    lost = {"connector": "slack", "account": "anna", "outcome": "gone"}
    assert bed.counted("events_total", **lost) == 1
