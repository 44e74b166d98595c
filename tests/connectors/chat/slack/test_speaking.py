"""What agents say in a workspace, by whose app, and what becomes of it."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from actors.errors import DeliveryBusyError, DeliveryRefusedError, DeliveryUnknownError
from actors.messages.deliveries import Edit, Typing
from actors.messages.inbound import Address
from connectors.chat.requests import BusyError, LostError
from tests.fakes.slack.replies import Reply, refusal
from tests.support.chat.slack_bed import BEN, CREW, DIRECT, ZOE, SlackBed, delivery

POST = "chat.postMessage"


async def test_markdown_is_said_as_slack_shows_it_and_calls_nobody() -> None:
    bed = SlackBed()
    async with bed.listening() as slack:
        await bed.transport.deliver(delivery("**Hello** <@UZOE> <!channel> & co"))
        shown = slack.said(CREW)[0]["text"]
    assert shown.startswith("*Hello*")
    assert "<@UZOE>" not in shown
    assert "<!channel>" not in shown
    form = next(each for method, _, each in slack.asked if method == POST)
    assert form["unfurl_links"] == form["link_names"] == "false"


async def test_a_question_for_leave_has_buttons_until_it_reads_otherwise() -> None:
    bed = SlackBed()
    text = "anna wants to run `x` — /approve 3F or /deny 3F, 9 s"
    async with bed.listening() as slack:
        receipt = await bed.transport.deliver(delivery(text, kind="notice"))
        (message,) = slack.said(CREW)
        section, row = message["blocks"]
        assert section["text"]["text"] == message["text"]
        assert [(each["text"]["text"], each["value"]) for each in row["elements"]] == [
            ("/approve 3F", "approve:3F"),
            ("/deny 3F", "deny:3F"),
        ]
        edit = Edit(
            id="e",
            correlation_id="c",
            address=Address("slack", CREW),
            agent="anna",
            receipt=receipt,
            text="done",
        )
        await bed.transport.presence.edit(edit)
        assert (message["text"], "blocks" in message) == ("done", False)
        longer = f"{'x' * 3_000} {text}"
        await bed.transport.deliver(delivery(longer, kind="notice"))
        assert "blocks" not in slack.said(CREW)[-1]


@pytest.mark.parametrize(
    ("thread", "kind", "shown"),
    [
        ("", "notice", "/callboard new begins another one."),
        ("1741234567.000100", "notice", "@anna /new begins another one."),
        ("", "reply", "/new begins another one."),
    ],
)
async def test_the_runtime_names_commands_as_people_can_type_them(
    thread: str, kind: str, shown: str
) -> None:
    bed = SlackBed()
    place = Address("slack", CREW, thread)
    text = "/new begins another one."
    async with bed.listening():
        await bed.transport.deliver(delivery(text, kind=kind, address=place))
    assert bed.shown() == [shown]


async def test_each_agent_speaks_by_its_own_app() -> None:
    bed = SlackBed()
    async with bed.listening() as slack:
        for agent in ("anna", "ben", "cleo", ""):
            await bed.transport.deliver(delivery("hi", agent))
        said = [(each["user"], each["text"]) for each in slack.said(CREW)]
    assert said == [
        ("UANNA", "hi"),
        ("UBEN", "hi"),
        ("UANNA", "cleo: hi"),
        ("UANNA", "hi"),
    ]


async def test_who_is_not_there_is_spoken_for() -> None:
    bed = SlackBed()
    bed.slack.members[CREW].remove(BEN)
    async with bed.listening() as slack:
        await bed.transport.deliver(delivery("hi", "ben"))
        assert slack.said(CREW)[0]["text"] == "ben: hi"


async def test_an_answer_stands_in_its_thread() -> None:
    bed = SlackBed()
    async with bed.listening() as slack:
        ts = slack.say(CREW, ZOE, "hello")
        await bed.transport.deliver(delivery("hi", address=Address("slack", CREW, ts)))
        assert slack.said(CREW)[0]["thread_ts"] == ts


@pytest.mark.parametrize("thread", [False, True])
async def test_what_was_said_and_not_confirmed_is_found_by_its_mark(
    *, thread: bool
) -> None:
    bed = SlackBed()
    async with bed.listening() as slack:
        ts = slack.say(CREW, ZOE, "hello") if thread else ""
        said = delivery("hi", address=Address("slack", CREW, ts))
        slack.after.append((POST, LostError("reset")))
        with pytest.raises(DeliveryUnknownError):
            await bed.transport.deliver(said)
        receipt = await bed.make_another_look_up(said)
        assert receipt == f"{CREW}/{slack.said(CREW)[0]['ts']}"
        assert await bed.make_another_look_up(delivery("not said")) is None


async def test_who_cannot_look_asks_again() -> None:
    bed = SlackBed()
    async with bed.listening() as slack:
        slack.faults.append(("conversations.history", Reply(502, {})))
        with pytest.raises(DeliveryBusyError):
            await bed.transport.look_up(delivery("hi"))


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (refusal("channel_not_found"), DeliveryRefusedError),
        (refusal("is_archived"), DeliveryRefusedError),
        (refusal("missing_scope"), DeliveryRefusedError),
        (refusal("token_revoked"), DeliveryBusyError),
        (refusal("ratelimited", 429), DeliveryBusyError),
        (BusyError("no route"), DeliveryBusyError),
        (refusal("fatal_error"), DeliveryUnknownError),
        (Reply(500, {}), DeliveryUnknownError),
        (Reply(200, {"ok": True}), DeliveryUnknownError),
    ],
)
async def test_a_refusal_says_whether_to_try_again(
    fault: Reply | Exception, expected: type[Exception]
) -> None:
    bed = SlackBed()
    async with bed.listening() as slack:
        slack.faults.append((POST, fault))
        with pytest.raises(expected):
            await bed.transport.deliver(delivery("hi"))


async def test_slack_says_how_long_to_wait() -> None:
    bed = SlackBed()
    limited = Reply(429, {"ok": False, "error": "ratelimited"}, {"retry-after": "7"})
    async with bed.listening() as slack:
        slack.faults.append((POST, limited))
        with pytest.raises(DeliveryBusyError) as caught:
            await bed.transport.deliver(delivery("hi"))
        assert caught.value.retry_after == 7.0


async def test_a_draft_is_never_longer_than_an_edit_may_be() -> None:
    bed = SlackBed()
    most = bed.transport.abilities.max_part_chars
    async with bed.listening() as slack:
        receipt = await bed.transport.deliver(delivery("..."))
        for text in ("x" * most, "**a** " * (most // 6), "&" * (most // 5)):
            edit = Edit(
                id="e",
                correlation_id="c",
                address=Address("slack", CREW),
                agent="anna",
                receipt=receipt,
                text=text,
            )
            await bed.transport.presence.edit(edit)
            assert 0 < len(slack.said(CREW)[0]["text"]) <= 4000


async def test_an_assistants_thread_shows_that_it_writes() -> None:
    bed = SlackBed("anna")
    async with bed.listening() as slack:
        ts = slack.say(DIRECT, ZOE, "hello")
        for is_over in (False, True):
            bed.transport.show_typing(
                Typing(
                    correlation_id="c",
                    reply_id="r",
                    address=Address("slack", DIRECT, ts),
                    agent="anna",
                    is_over=is_over,
                )
            )
            await trio.testing.wait_all_tasks_blocked()
    assert [status for _, _, status in slack.statuses] == ["is writing…", ""]
