"""What agents say goes out by the right bot, to the right place, readable."""

from __future__ import annotations

import httpx
import pytest
import trio
from msgspec import structs
from trio.testing import MockClock

from actors.errors import DeliveryBusyError, DeliveryRefusedError, DeliveryUnknownError
from actors.messages.deliveries import Edit, Reaction, Typing
from actors.messages.inbound import Address
from connectors.chat.telegram.markup import SIGNS
from connectors.chat.telegram.platform import PLATFORM
from tests.fakes.telegram.api import REACTIONS, refusal
from tests.support.chat.telegram_bed import GROUP, ZOE, BotBed, delivery

HERE = Address("telegram", str(GROUP))


async def test_markdown_is_shown_and_calls_nobody(autojump_clock: MockClock) -> None:
    del autojump_clock
    bed = BotBed()
    chat = bed.server.private(1, "anna_bot")
    async with bed.listening() as server:
        await bed.transport.deliver(delivery("**Hi** @sam, 2 < 3 & `x`"))
    (message,) = chat.by(bed.bot())
    assert message["text"] == "Hi @\u200bsam, 2 < 3 & x"
    assert [each["type"] for each in message["entities"]] == ["bold", "code"]
    (asked,) = server.asked_with("sendMessage")
    assert asked["link_preview_options"] == {"is_disabled": True}


async def test_what_telegram_cannot_read_is_said_as_plain_text(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed()
    chat = bed.server.private(1, "anna_bot")
    words = "Bad Request: can't parse entities: Unexpected end of name token"
    async with bed.listening() as server:
        server.faults.append(("sendMessage", refusal(400, words)))
        receipt = await bed.transport.deliver(delivery("**Hi** <you> @sam_1"))
        assert chat.texts(bed.bot()) == ["**Hi** <you> @\u200bsam_1"]
        assert bed.counted("plain_total") == 1
        server.faults.append(("editMessageText", refusal(400, words)))
        edit = Edit(
            id="e",
            correlation_id="c",
            address=Address("telegram", "1@anna"),
            agent="anna",
            receipt=receipt,
            text="*ho*",
        )
        await bed.transport.presence.edit(edit)
        assert chat.texts(bed.bot()) == ["*ho*"]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (refusal(429, "Too Many", {"retry_after": 4}), DeliveryBusyError),
        (refusal(401, "Unauthorized"), DeliveryBusyError),
        (httpx.ConnectError("refused"), DeliveryBusyError),
        (refusal(403, "bot was blocked by the user"), DeliveryRefusedError),
        (refusal(400, "Bad Request: chat not found"), DeliveryRefusedError),
        (refusal(502, "Bad Gateway"), DeliveryUnknownError),
        (httpx.ReadError("reset"), DeliveryUnknownError),
        (None, DeliveryUnknownError),
        (httpx.Response(200, text="<html>"), DeliveryUnknownError),
    ],
)
async def test_each_failure_means_to_a_courier_what_it_is(
    fault: httpx.Response | Exception | None,
    error: type[Exception],
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed()
    bed.server.private(1, "anna_bot")
    async with bed.listening() as server:
        server.faults.append(("sendMessage", fault))
        with pytest.raises(error) as caught:
            await bed.transport.deliver(delivery("hi"))
    assert "AAAA" not in repr(caught.value)
    assert "AAAA" not in repr(caught.value.__cause__)


async def test_a_chat_that_is_flooded_is_left_alone_as_a_whole(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed()
    chat = bed.server.private(1, "anna_bot")
    other = bed.server.private(2, "anna_bot")
    async with bed.listening() as server:
        chat.held_until = trio.current_time() + 9
        with pytest.raises(DeliveryBusyError) as caught:
            await bed.transport.deliver(delivery("hi"))
        assert caught.value.retry_after == 9
        asked = len(server.asked)
        reaction = Reaction(
            correlation_id="c",
            address=Address("telegram", "1@anna"),
            agent="anna",
            message="1/1@anna",
            sign="👀",
        )
        with pytest.raises(DeliveryBusyError):
            await bed.transport.presence.react(reaction)
        assert len(server.asked) == asked
        there = Address("telegram", "2@anna")
        await bed.transport.deliver(delivery("ho", address=there))
        await trio.sleep(9)
        await bed.transport.deliver(delivery("hi"))
    assert (chat.texts(bed.bot()), other.texts(bed.bot())) == (["hi"], ["ho"])


async def test_in_private_what_is_not_answered_is_replied_to_and_an_answer_not() -> (
    None
):
    bed = BotBed("anna")
    async with bed.listening() as server:
        chat = server.private(1, "anna_bot")
        asked = server.say(chat, ZOE, "hi")
        inbound = await bed.ingress.next()
        said = delivery(
            "ho", "anna", address=inbound.address, reply_to=inbound.platform_id
        )
        await bed.transport.deliver(said)
        refused = structs.replace(said, id="refused", agent="", trouble="busy")
        await bed.transport.deliver(refused)
    answer, notice = chat.by(bed.bot("anna"))
    assert "reply_to_message" not in answer
    assert notice["reply_to_message"]["message_id"] == asked["message_id"]


async def test_an_answer_in_a_group_replies_in_its_topic_by_its_own_bot(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed("anna+", "ben+")
    chat = bed.server.group(GROUP, "anna_bot", "ben_bot")
    chat.topics.add(5)
    async with bed.listening() as server:
        asked = server.say(
            chat,
            ZOE,
            "@ben_bot hi",
            entities=[{"type": "mention", "offset": 0, "length": 8}],
            message_thread_id=5,
            is_topic_message=True,
        )
        inbound = await bed.ingress.next()
        assert inbound.address == Address("telegram", str(GROUP), "5")
        assert (inbound.mentions, inbound.present) == (("ben",), ("anna", "ben"))
        answer = delivery(
            "ho", "ben", address=inbound.address, reply_to=inbound.platform_id
        )
        await bed.transport.deliver(answer)
    (said,) = chat.by(bed.bot("ben"))
    assert said["reply_to_message"]["message_id"] == asked["message_id"]
    assert (said["message_thread_id"], chat.by(bed.bot("anna"))) == (5, [])


async def test_who_has_no_bot_speaks_by_another_and_says_so(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed("anna", "ben", shown={"ben": "Dr. Ben"})
    private = bed.server.private(1, "anna_bot")
    group = bed.server.group(GROUP, "ben_bot")
    async with bed.listening():
        await bed.transport.deliver(delivery("I do.", "ben"))
        await bed.transport.deliver(delivery("and I", "cleo", address=HERE))
        await bed.transport.deliver(delivery("so?", "anna", address=HERE))
        elsewhere = Address("telegram", "-5")
        with pytest.raises(DeliveryRefusedError, match="no bot of ours"):
            await bed.transport.deliver(delivery("hm", address=elsewhere))
    assert private.texts(bed.bot("anna")) == ["Dr. Ben: I do."]
    assert group.texts(bed.bot("ben")) == ["cleo: and I", "anna: so?"]


@pytest.mark.parametrize("chat", ["", "zoe", "1@nobody", "1@anna/5", "--5"])
async def test_what_is_no_chat_is_refused(chat: str, autojump_clock: MockClock) -> None:
    del autojump_clock
    bed = BotBed()
    async with bed.listening():
        with pytest.raises(DeliveryRefusedError):
            await bed.transport.deliver(
                delivery("hi", address=Address("telegram", chat))
            )


async def test_typing_is_shown_where_it_belongs(autojump_clock: MockClock) -> None:
    del autojump_clock
    bed = BotBed()
    chat = bed.server.group(GROUP, "anna_bot")
    async with bed.listening():
        typing = Typing(
            correlation_id="c",
            reply_id="r",
            address=Address("telegram", str(GROUP), "5"),
            agent="anna",
        )
        bed.transport.show_typing(typing)
        await bed.wait(lambda: bool(chat.typing))
    assert chat.typing == [("anna_bot", 5)]


async def test_a_question_for_leave_has_buttons_for_its_own_id_alone(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed()
    chat = bed.server.private(1, "anna_bot")
    text = (
        "anna wants to run `x`: /approve 9Z or /deny 9Z — /approve 3F or /deny 3F, 9 s"
    )
    async with bed.listening():
        await bed.transport.deliver(delivery(text, kind="notice"))
        await bed.transport.deliver(delivery(f"{text}!"))
    asked, said = chat.by(bed.bot())
    ((first, second),) = asked["reply_markup"]["inline_keyboard"]
    assert first == {"text": "/approve 3F", "callback_data": "approve:3F"}
    assert second == {"text": "/deny 3F", "callback_data": "deny:3F"}
    assert "reply_markup" not in said


def test_signs_that_are_put_instead_are_there() -> None:
    assert {each.removesuffix("\ufe0f") for each in SIGNS.values()} <= REACTIONS


async def test_the_longest_part_fits(autojump_clock: MockClock) -> None:
    del autojump_clock
    bed = BotBed()
    chat = bed.server.private(1, "anna_bot")
    async with bed.listening():
        most = PLATFORM.limits.part
        for text in ("\U0001f98a" * (most // 2), "**x** " * (most // 6), "<" * 800):
            await bed.transport.deliver(delivery(text))
    assert len(chat.by(bed.bot())) == 3


async def test_what_the_runtime_says_about_an_agent_its_own_bot_says(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed("anna", "ben")
    chat = bed.server.group(GROUP, "anna_bot", "ben_bot")
    async with bed.listening():
        told = delivery("(stopped)", "", address=HERE, speaker="ben")
        await bed.transport.deliver(told)
        await bed.transport.deliver(delivery("by whoever", "", address=HERE, id="2"))
    assert chat.texts(bed.bot("ben")) == ["(stopped)"]
    assert chat.texts(bed.bot("anna")) == ["by whoever"]
