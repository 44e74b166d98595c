"""What people and programs write in a workspace, and what the agents are told of it."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from actors.messages.inbound import Address, Inbound, Quoted
from connectors.chat.inbound import MOST_IN_ALL, NO_ROOM
from connectors.chat.markup.dialect import UNKNOWN
from connectors.chat.requests import LostError
from runtime.errors import StoreUnavailableError
from tests.fakes.slack.replies import Json, Reply, pressed
from tests.support.chat.slack_bed import (
    ANNA,
    BEN,
    CREW,
    DIRECT,
    SAM,
    ZOE,
    SlackBed,
    delivery,
)

LATER = "4000000000.000001"
PICTURE = "https://files.slack.com/files-pri/T1-F1/cat.png"


def file_of(**more: object) -> Json:
    return {
        "name": "cat.png",
        "mimetype": "image/png",
        "size": 3,
        "url_private_download": PICTURE,
        **more,
    }


async def written(bed: SlackBed, text: str, channel: str = CREW, **more: object) -> str:
    ts = bed.slack.say(channel, str(more.pop("user", ZOE)), text, **more)
    await trio.testing.wait_all_tasks_blocked()
    return f"{channel}/{ts}"


async def only(bed: SlackBed) -> Inbound:
    await bed.wait(lambda: bool(bed.ingress.accepted))
    (inbound,) = bed.ingress.accepted
    return inbound


async def test_a_message_in_a_channel_says_who_and_where() -> None:
    bed = SlackBed()
    async with bed.listening():
        key = await written(bed, f"Good morning <@{ANNA}> &amp; <@USAM>, see <#C9|ops>")
        inbound = await only(bed)
    assert inbound.platform_id == key
    assert inbound.text == "Good morning @anna & @Sam, see #ops"
    assert (inbound.sender_id, inbound.sender_name) == (ZOE, "Zoe")
    assert (inbound.address.chat, inbound.address.thread) == (CREW, "")
    assert inbound.mentions == ("anna",)
    assert inbound.present == ("anna", "ben")
    assert inbound.roles == ("admin",)
    assert not inbound.is_direct
    assert not inbound.is_bot


@pytest.mark.parametrize(
    ("locale", "language"), [("fr-FR", "fr"), ("is-IS", ""), (None, "")]
)
async def test_slack_tells_which_language_somebody_reads(
    locale: str | None, language: str
) -> None:
    bed = SlackBed()
    bed.slack.person(ZOE, "Zoe", **({"locale": locale} if locale else {}))
    async with bed.listening():
        await written(bed, "hello", DIRECT)
        assert (await only(bed)).language == language


async def test_what_both_apps_hear_is_handed_in_once() -> None:
    bed = SlackBed()
    async with bed.listening():
        await written(bed, f"<@{BEN}> hello")
        message = bed.slack.channels[CREW][-1]
        bed.slack.tell(CREW, message, "app_mention")
        await bed.wait(lambda: len(bed.slack.acknowledged) == 4)
        assert (await only(bed)).mentions == ("ben",)


async def test_alone_with_an_agent_it_is_meant() -> None:
    bed = SlackBed()
    async with bed.listening():
        await written(bed, "hello", DIRECT)
        inbound = await only(bed)
    assert inbound.is_direct
    assert (inbound.agent, inbound.present) == ("anna", ("anna",))


async def test_what_our_own_apps_say_is_no_message() -> None:
    bed = SlackBed()
    async with bed.listening():
        for user, bot in ((ANNA, "BANNA"), (BEN, "BBEN")):
            await written(bed, "I speak", user=user, bot_id=bot)
        assert bed.texts() == []
        assert (
            bed.counted(
                "events_total", connector="slack", account="anna", outcome="own"
            )
            == 2
        )


async def test_other_programs_are_marked_as_such() -> None:
    bed = SlackBed("anna")
    async with bed.listening():
        await written(bed, "built", user="", bot_id="B9", username="CI")
        inbound = await only(bed)
    assert inbound.is_bot
    assert (inbound.sender_id, inbound.sender_name) == ("B9", "CI")


@pytest.mark.parametrize(
    "subtype", ["message_changed", "message_deleted", "channel_join", "channel_topic"]
)
async def test_what_is_no_message_is_acknowledged_and_left(subtype: str) -> None:
    bed = SlackBed("anna")
    async with bed.listening():
        await written(bed, "x", subtype=subtype)
        await bed.wait(lambda: len(bed.slack.acknowledged) == 1)
        assert bed.texts() == []


async def test_a_message_that_is_deleted_is_withdrawn() -> None:
    bed = SlackBed("anna")
    async with bed.listening():
        key = await written(bed, "hello")
        ts = key.partition("/")[2]
        deleted = {"subtype": "message_deleted", "ts": "9.000001", "deleted_ts": ts}
        bed.slack.tell(CREW, deleted)
        bed.slack.tell(CREW, {**deleted, "deleted_ts": "x"})
        await bed.wait(lambda: len(bed.slack.acknowledged) == 3)
        bed.ingress.unreadable = StoreUnavailableError("disk full")
        bed.slack.tell(CREW, {**deleted, "deleted_ts": "9.000002"})
        await bed.wait(lambda: len(bed.slack.acknowledged) == 4)
    assert bed.ingress.withdrawn == [("slack", key)]


async def test_an_answer_in_an_agents_thread_is_a_reply_to_it() -> None:
    bed = SlackBed("anna")
    async with bed.listening():
        first = bed.slack.add(CREW, {"user": ANNA, "bot_id": "BANNA", "text": "Well?"})
        await written(bed, "yes", thread_ts=first["ts"])
        inbound = await only(bed)
    assert inbound.address.thread == first["ts"]
    assert inbound.reply_to == f"{CREW}/{first['ts']}"
    assert inbound.quoted is not None
    assert inbound.quoted.agent == "anna"


async def test_the_thread_of_what_was_said_here_is_known_without_slacks_word() -> None:
    bed = SlackBed()
    async with bed.listening() as slack:
        receipt = await bed.transport.deliver(delivery("Well?", "ben"))
        first = receipt.partition("/")[2]
        event = {"user": ZOE, "text": "yes", "ts": slack.new_ts(), "thread_ts": first}
        slack.tell(CREW, event)
        inbound = await only(bed)
    assert inbound.reply_to == receipt
    assert inbound.quoted == Quoted("Well?", agent="ben")


async def test_a_channels_messages_begin_threads_if_that_is_wished() -> None:
    bed = SlackBed("anna", start_threads=True)
    async with bed.listening():
        key = await written(bed, "hello")
        inbound = await only(bed)
    assert inbound.address.thread == key.partition("/")[2]


@pytest.mark.parametrize(
    ("command", "text", "told"),
    [
        ("/callboard", "help me", "/help me"),
        ("/callboard", "/new", "/new"),
        ("/callboard", "", "/help"),
        ("/stop", "all", "/stop all"),
    ],
)
async def test_a_slash_command_is_a_command(command: str, text: str, told: str) -> None:
    bed = SlackBed("anna")
    payload = {
        "command": command,
        "text": text,
        "channel_id": CREW,
        "user_id": ZOE,
        "user_name": "zoe",
        "trigger_id": "13345224609.738474920.8088",
    }
    async with bed.listening():
        for _ in range(2):
            bed.slack.push(bed.slack.apps[ANNA], "slash_commands", payload)
        await bed.wait(lambda: len(bed.slack.acknowledged) == 2)
        inbound = await only(bed)
    assert inbound.text == told
    assert inbound.mentions == ("anna",)


async def test_what_the_runtime_says_to_a_command_only_its_giver_sees() -> None:
    bed = SlackBed("anna")
    url = "https://hooks.slack.com/commands/T1/2/x"
    payload = {"command": "/callboard", "text": "whoami", "channel_id": CREW}
    payload |= {"user_id": ZOE, "trigger_id": "1.2", "response_url": url}
    async with bed.listening():
        bed.slack.push(bed.slack.apps[ANNA], "slash_commands", payload)
        command = (await only(bed)).platform_id
        first = delivery("**You** are Zoe.", "", kind="notice", reply_to=command)
        receipt = await bed.transport.deliver(first)
        assert await bed.transport.deliver(first) == receipt
        assert bed.slack.responses == [
            (url, {"response_type": "ephemeral", "text": "*You* are Zoe."})
        ]
        await bed.transport.deliver(delivery("In words of mine.", reply_to=command))
        bed.slack.used_up.add(url)
        late = delivery("More.", "", kind="notice", reply_to=command)
        await bed.transport.deliver(late)
    assert bed.shown() == ["In words of mine.", "More."]
    assert len(bed.slack.responses) == 1


async def test_a_pressed_button_is_a_command_of_whoever_presses_it() -> None:
    bed = SlackBed("anna")
    async with bed.listening() as slack:
        parent = slack.say(CREW, ZOE, "hello")
        place = Address("slack", CREW, parent)
        asked = delivery(
            "anna wants to run `x` — /approve 3F or /deny 3F, 9 s",
            kind="notice",
            address=place,
        )
        await bed.transport.deliver(asked)
        for _ in range(2):
            slack.press(CREW, SAM, 0)
        await bed.wait(lambda: len(bed.ingress.accepted) == 2)
        await bed.wait(lambda: not slack.apps[ANNA].waiting)
    inbound = bed.ingress.accepted[1]
    assert (inbound.text, inbound.sender_id) == ("/approve 3F", SAM)
    assert (inbound.address, inbound.mentions) == (place, ("anna",))
    assert len(bed.texts()) == 2


async def test_a_button_that_stands_for_nothing_is_said_to_be_none() -> None:
    bed = SlackBed("anna")
    async with bed.listening() as slack:
        await bed.transport.deliver(delivery("?"))
        (message,) = slack.said(CREW)
        for said in ("", "no-prefix", "x y:1", "a:"):
            payload = pressed(message, CREW, ZOE, {"value": said})
            slack.push(slack.apps[ANNA], "interactive", payload)
        slack.push(slack.apps[ANNA], "interactive", {"type": "view_submission"})
        slack.push(slack.apps[ANNA], "interactive", {"type": "block_actions"})
        await bed.wait(lambda: len(slack.whispers) == 4)
        await bed.wait(lambda: not slack.apps[ANNA].waiting)
    assert slack.whispers[0] == (ANNA, ZOE, UNKNOWN)
    assert bed.texts() == []
    assert (
        bed.counted(
            "events_total", connector="slack", account="anna", outcome="unknown_button"
        )
        == 4
    )


async def test_files_come_along_by_the_apps_token(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = SlackBed("anna")
    bed.slack.files[PICTURE] = b"cat"
    async with bed.listening():
        bed.slack.faults.append(("fetch", LostError("reset")))
        await written(bed, "look", subtype="file_share", files=[file_of()])
        inbound = await only(bed)
    (cat,) = inbound.attachments
    assert (cat.kind, cat.name, cat.content) == ("image", "cat.png", b"cat")
    fetched = [token for method, token, _ in bed.slack.asked if method == "fetch"]
    assert fetched == ["xoxb-anna"] * 2


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"size": 99}, "above 10 bytes"),
        ({"mode": "tombstone"}, "Slack does not have it"),
        ({"url_private_download": "https://files.slack.com/none"}, "files:read"),
    ],
)
async def test_a_file_that_cannot_be_had_is_told_of(more: Json, why: str) -> None:
    bed = SlackBed("anna", max_media_bytes=10)
    async with bed.listening():
        await written(bed, "look", files=[file_of(**more)])
        inbound = await only(bed)
    assert inbound.attachments == ()
    assert why in inbound.text


async def test_an_album_comes_along_as_far_as_it_can_be_stored() -> None:
    bed = SlackBed("anna")
    bed.slack.files[PICTURE] = b"x" * (MOST_IN_ALL // 4)
    async with bed.listening():
        files = [file_of(name=f"{n}.png", size=MOST_IN_ALL // 4) for n in range(6)]
        await written(bed, "look", subtype="file_share", files=files)
        inbound = await only(bed)
    assert [each.name for each in inbound.attachments] == [f"{n}.png" for n in range(4)]
    notes = [f"[image {n}.png was not fetched: {NO_ROOM}]" for n in (4, 5)]
    assert inbound.text.split("\n") == ["look", *notes]
    assert sum(method == "fetch" for method, _, _ in bed.slack.asked) == 4


async def test_for_a_stranger_no_file_is_fetched() -> None:
    bed = SlackBed("anna")
    bed.ingress.strangers.add(ZOE)
    async with bed.listening():
        await written(bed, "look", files=[file_of()])
        await bed.wait(lambda: len(bed.ingress.turned_away) == 1)
    assert not [each for each in bed.slack.asked if each[0] == "fetch"]


async def test_an_app_that_was_asked_away_is_not_present() -> None:
    bed = SlackBed()
    async with bed.listening():
        left = {"type": "member_left_channel", "user": BEN, "channel": CREW}
        bed.slack.push(bed.slack.apps[BEN], "events_api", {"event": left})
        await bed.wait(lambda: len(bed.slack.acknowledged) == 1)
        bed.slack.members[CREW].remove(BEN)
        await written(bed, "who is here?")
        assert (await only(bed)).present == ("anna",)


async def test_at_the_start_all_who_are_called_are_known_before_anybody_hears(
    autojump_clock: MockClock,
) -> None:
    bed = SlackBed()
    bed.slack.faults.append(("users.conversations", Reply(503, {})))
    bed.slack.say(CREW, ZOE, f"<@{ANNA}> <@{BEN}> good day", ts=LATER)
    del autojump_clock
    async with bed.listening():
        inbound = await only(bed)
    assert inbound.mentions == inbound.present == ("anna", "ben")
