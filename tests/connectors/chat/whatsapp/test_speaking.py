"""What agents say on WhatsApp goes out once, by the right number, when it may."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest
import trio
import trio.testing
from hypothesis import given, strategies as st
from trio.testing import MockClock

from actors.errors import DeliveryBusyError, DeliveryRefusedError, DeliveryUnknownError
from actors.messages.deliveries import Typing
from actors.messages.inbound import Address
from actors.outbound.drafts import ChatPacing
from tests.fakes.whatsapp.graph import refusal
from tests.support.chat.whatsapp_bed import ANNA, BEN, HERE, ZOE, WhatsAppBed, delivery

DAY = 86_400.0


def typing() -> Typing:
    return Typing(correlation_id="c", reply_id="r", address=HERE, agent="anna")


@given(st.lists(st.floats(0, 90), max_size=40))
def test_answers_go_out_at_once_and_never_more_than_whatsapp_takes(
    pauses: list[float],
) -> None:
    can = WhatsAppBed("anna").transport.abilities
    pacing = ChatPacing(can.pace, can.draft_pace, can.per_minute)
    now = owed = 0.0
    for number, pause in enumerate(pauses):
        asked, before = now + pause, now
        now = max(asked, pacing.message_at)
        assert number >= 10 or now <= asked + 1.0
        owed = max(0.0, owed - (now - before)) + 6.0
        assert owed <= 60.001, "a message takes 6 seconds, and 45 may be owed"
        pacing.said(now)


async def test_a_chat_is_answered_by_its_number() -> None:
    bed = WhatsAppBed("anna", "ben")
    to_ben = Address("whatsapp", f"{BEN}:{ZOE}")
    async with bed.listening() as server:
        await bed.transport.deliver(delivery("mine"))
        await bed.transport.deliver(delivery("ours", "", kind="notice"))
        await bed.transport.deliver(delivery("as a guest", address=to_ben))
    assert [(each["number"], each["text"]["body"]) for each in server.said] == [
        (ANNA, "mine"),
        (ANNA, "ours"),
        (BEN, "anna: as a guest"),
    ]


async def test_markdown_is_written_as_whatsapp_shows_it() -> None:
    bed = WhatsAppBed()
    async with bed.listening() as server:
        await bed.transport.deliver(delivery("**four** and [more](https://a.example)"))
    assert server.texts(ZOE) == ["*four* and more (https://a.example)"]


async def test_an_answer_stands_below_its_question_only_where_that_helps() -> None:
    bed = WhatsAppBed()
    async with bed.listening() as server:
        await bed.write("one")
        answer = delivery("1", reply_to="wamid.in1")
        await bed.transport.deliver(answer)
        await bed.write("two")
        late = msgspec.structs.replace(answer, id="late", text="1!")
        await bed.transport.deliver(late)
        await bed.transport.deliver(msgspec.structs.replace(late, id="l2", part=1))
        server.gone.add("wamid.in1")
        gone = msgspec.structs.replace(late, id="gone", text="1?")
        await bed.transport.deliver(gone)
    contexts = [each.get("context") for each in server.said]
    assert contexts == [None, {"message_id": "wamid.in1"}, None, None]


@pytest.mark.parametrize(
    ("fault", "error", "wait", "told"),
    [
        (refusal(401, 190, "expired", 463), DeliveryBusyError, 60, "make a new one"),
        (refusal(400, 100, "none", 33), DeliveryRefusedError, None, "is the id right"),
        (refusal(429, 130429), DeliveryBusyError, 1, "80 messages"),
        (refusal(400, 131056), DeliveryBusyError, 6, "one in 6 seconds"),
        (refusal(400, 131047), DeliveryBusyError, 30, "24 hours"),
        (refusal(400, 131026), DeliveryRefusedError, None, "cannot be delivered"),
        (refusal(400, 131030), DeliveryRefusedError, None, "test number"),
        (refusal(403, 200, "perm"), DeliveryBusyError, 60, "permission"),
        (httpx.Response(429, headers={"retry-after": "7"}), DeliveryBusyError, 7, ""),
        (httpx.Response(404, text="<html>"), DeliveryRefusedError, None, "404"),
        (httpx.ConnectError("refused"), DeliveryBusyError, None, "refused"),
    ],
)
async def test_what_a_courier_is_told(
    fault: Any, error: type[Exception], wait: float | None, told: str
) -> None:
    bed = WhatsAppBed()
    async with bed.listening() as server:
        server.faults.append(("/messages", fault))
        with pytest.raises(error) as caught:
            await bed.transport.deliver(delivery("hi"))
        assert told in str(caught.value)
        assert "EAA-token" not in str(caught.value)
        assert getattr(caught.value, "retry_after", None) == wait
        assert server.texts() == []


def shown(bed: WhatsAppBed) -> float:
    name = 'callboard_whatsapp_up{account="anna",connector="whatsapp"} '
    lines = bed.metrics.render().decode().splitlines()
    (found,) = [each for each in lines if each.startswith(name)]
    return float(found.removeprefix(name))


async def test_a_token_that_ends_is_noticed_within_a_minute(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = WhatsAppBed()
    async with bed.listening() as server:
        await trio.sleep(300)
        assert shown(bed) == 1
        token, server.numbers[ANNA] = server.numbers[ANNA], "another"
        with pytest.raises(DeliveryBusyError):
            await bed.transport.deliver(delivery("hi"))
        await trio.sleep(60)
        assert shown(bed) == 0
        assert bed.transport.trouble.startswith("anna: ")
        server.numbers[ANNA] = token
        await trio.sleep(61)
        assert (shown(bed), bed.transport.trouble) == (1, "")
        asked = len(server.asked)
        await trio.sleep(3_600)
        assert len(server.asked) - asked <= 5


@pytest.mark.parametrize(
    "fault",
    [httpx.ReadError("reset"), 100.0, httpx.Response(502), httpx.Response(200)],
)
async def test_an_answer_that_got_lost_is_found_by_its_status(
    fault: Any, autojump_clock: MockClock
) -> None:
    del autojump_clock
    bed = WhatsAppBed()
    async with bed.listening() as server, trio.open_nursery() as nursery:
        server.faults.append(("/messages", fault))

        async def tell() -> None:
            await trio.sleep(35 if isinstance(fault, float) else 3)
            sent = {"id": "wamid.x", "biz_opaque_callback_data": "anna/hi"}
            told = server.status(sent, "delivered")
            await bed.call(server.webhook(ANNA, statuses=(told,)))

        nursery.start_soon(tell)
        assert await bed.transport.deliver(delivery("hi")) == "wamid.x"
        assert await bed.transport.deliver(delivery("hi")) == "wamid.x"
        assert bed.counted("statuses", status="delivered") == 1


async def test_an_answer_nobody_knows_of_stays_in_doubt(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = WhatsAppBed()
    async with bed.listening() as server:
        server.faults.append(("/messages", httpx.ReadError("reset")))
        with pytest.raises(DeliveryUnknownError):
            await bed.transport.deliver(delivery("hi"))
        assert server.texts() == ["hi"]


async def test_after_24_hours_words_are_kept_until_the_person_writes() -> None:
    bed = WhatsAppBed()
    async with bed.listening() as server:
        await bed.write("hi")
        bed.clock.ahead = DAY
        asked = len(server.said)
        for _ in range(3):
            with pytest.raises(DeliveryBusyError, match="131047"):
                await bed.transport.deliver(delivery("good morning"))
        assert len(server.said) == asked, "Meta is not asked for what it will not take"
        assert bed.counted("events", outcome="window_closed") == 1
        await bed.write("hi again", at=1_700_000_000 + int(DAY))
        assert await bed.transport.deliver(delivery("good morning"))
        assert server.texts(ZOE) == ["good morning"]


async def test_a_closed_window_is_learnt_from_meta_and_may_be_refused() -> None:
    bed = WhatsAppBed(outside_window="refuse")
    bed.server.closed.add(ZOE)
    async with bed.listening() as server:
        for _ in range(2):
            with pytest.raises(DeliveryRefusedError, match="24 hours"):
                await bed.transport.deliver(delivery("hi"))
        asked = [each for each in server.asked if each.endswith("/messages")]
        assert len(asked) == 1
        server.closed.clear()
        await bed.write("hello")
        assert await bed.transport.deliver(delivery("hi"))


async def test_a_window_that_closes_on_the_way_is_learnt_from_the_status() -> None:
    bed = WhatsAppBed()
    async with bed.listening() as server:
        await bed.transport.deliver(delivery("hi"))
        failed = server.status(server.said[0], "failed", 131047)
        await bed.call(server.webhook(ANNA, statuses=(failed,)))
        assert bed.counted("statuses", status="failed") == 1
        with pytest.raises(DeliveryBusyError, match="24 hours"):
            await bed.transport.deliver(delivery("more"))


async def test_all_statuses_are_counted_and_unknown_ones_too() -> None:
    bed = WhatsAppBed()
    async with bed.listening() as server:
        await bed.transport.deliver(delivery("hi"))
        states = ("sent", "delivered", "read", "played", "warmed_over")
        told = tuple(server.status(server.said[0], state) for state in states)
        assert (await bed.call(server.webhook(ANNA, statuses=told))).status == 200
    counted = {
        state: bed.counted("statuses", status=state)
        for state in ("sent", "delivered", "read", "other")
    }
    assert counted == {"sent": 1, "delivered": 1, "read": 2, "other": 1}


async def test_typing_is_shown_below_the_newest_words_and_not_too_often(
    autojump_clock: MockClock,
) -> None:
    bed = WhatsAppBed(mark_read=False)
    async with bed.listening() as server:
        bed.transport.show_typing(typing())  # there is nothing to show it below
        await bed.write("hi")
        for _ in range(3):
            bed.transport.show_typing(typing())
        await trio.testing.wait_all_tasks_blocked()
        assert len(server.read) == 1
        autojump_clock.jump(21)
        bed.transport.show_typing(typing())
        await trio.testing.wait_all_tasks_blocked()
    (first, second) = server.read
    assert first == second
    assert first["typing_indicator"] == {"type": "text"}
    assert first["message_id"] == "wamid.in1"


@pytest.mark.parametrize("chat", ["", "1001", "1001:", "9999:491701", "1001:../x"])
async def test_a_chat_that_is_none_of_ours_is_refused(chat: str) -> None:
    bed = WhatsAppBed()
    address = Address("whatsapp", chat)
    async with bed.listening() as server:
        with pytest.raises(DeliveryRefusedError):
            await bed.transport.deliver(delivery("hi", address=address))
    assert server.said == []
