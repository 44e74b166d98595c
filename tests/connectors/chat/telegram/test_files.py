"""What comes with a message, or in parts: files, albums, a text that clients cut."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import httpx
import pytest
import trio

from connectors.chat.telegram.inbound import ALBUM_PAUSE, LONG_TEXT
from tests.fakes.telegram.api import refusal
from tests.support.chat.telegram_bed import GROUP, SAM, ZOE, BotBed

if TYPE_CHECKING:
    from trio.testing import MockClock

    from tests.fakes.telegram.chats import Json

PHOTO = [
    {"file_id": "small", "file_unique_id": "s", "width": 90, "height": 90},
    {"file_id": "large", "file_unique_id": "l", "width": 900, "height": 900},
]
VOICE = {"file_id": "voice", "file_unique_id": "v", "mime_type": "audio/ogg"}


@pytest.mark.parametrize(
    ("more", "kind", "name"),
    [
        ({"photo": PHOTO, "caption": "look"}, "image", "large"),
        ({"voice": {**VOICE, "duration": 3}}, "audio", "voice"),
        ({"document": {**VOICE, "file_name": "a\nb.pdf"}}, "document", "voice"),
    ],
)
async def test_a_file_comes_along(
    more: Json, kind: str, name: str, autojump_clock: MockClock
) -> None:
    del autojump_clock
    bed = BotBed()
    chat = bed.server.private(1, "anna_bot")
    bed.server.files[name] = b"bytes"
    async with bed.listening() as server:
        server.say(chat, ZOE, **more)
        inbound = await bed.ingress.next()
    (file,) = inbound.attachments
    assert (file.kind, file.content) == (kind, b"bytes")
    assert inbound.text == more.get("caption", "")
    assert "\n" not in file.name


@pytest.mark.parametrize("place", ["group", "private"])
async def test_a_picture_that_is_replied_to_in_a_group_comes_along(
    place: str, autojump_clock: MockClock
) -> None:
    del autojump_clock
    bed = BotBed()
    group = bed.server.group(GROUP, "anna_bot")
    is_group = place == "group"
    chat = group if is_group else bed.server.private(1, "anna_bot")
    bed.server.files["large"] = b"bytes"
    text = "@anna_bot whose is it?"
    mark = {"type": "mention", "offset": 0, "length": 9}
    async with bed.listening() as server:
        told = server.say(chat, SAM, photo=PHOTO)
        if not is_group:
            await bed.ingress.next()
        server.say(chat, ZOE, text, entities=[mark], reply_to_message=told)
        inbound = await bed.ingress.next()
    brought = [b"bytes"] if is_group else []
    assert [each.content for each in inbound.attachments] == brought
    assert inbound.quoted is not None
    assert inbound.quoted.text == "[image: photo.jpg]"


def picture(number: int) -> Json:
    """Make one picture of an album; the first of one is said something with."""
    size = {"file_id": f"p{number}", "file_unique_id": f"p{number}"}
    called = {"type": "mention", "offset": 11, "length": 9}
    words = {"caption": "which one, @anna_bot?", "caption_entities": [called]}
    more = {"photo": [{**size, "width": 9, "height": 9}], "media_group_id": "g"}
    return {**more, **words} if number == 0 else more


@pytest.mark.parametrize("pause", [0.0, ALBUM_PAUSE - 0.5])
async def test_an_album_is_one_message(pause: float, autojump_clock: MockClock) -> None:
    del autojump_clock
    bed = BotBed("anna+", "ben+")
    group = bed.server.group(GROUP, "anna_bot", "ben_bot")
    bed.server.files |= {f"p{number}": b"%d" % number for number in range(4)}
    async with bed.listening() as server:
        for number in range(4):
            server.say(group, ZOE, **picture(number))
            await trio.sleep(pause)
        server.say(group, ZOE, "well?")
        album, after = [await bed.ingress.next_or_wait() for _ in range(2)]
        await trio.sleep(60)
    assert (album.text, album.mentions) == ("which one, @anna?", ("anna",))
    assert [each.content for each in album.attachments] == [b"0", b"1", b"2", b"3"]
    assert after.text == "well?"
    assert len(bed.ingress.accepted) == 2


async def test_what_only_one_bot_hears_of_an_album_is_not_lost(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed("anna", "ben+")
    group = bed.server.group(GROUP, "anna_bot", "ben_bot")
    bed.server.files |= {f"p{number}": b"%d" % number for number in range(3)}
    async with bed.listening() as server:
        for number in range(3):
            server.say(group, ZOE, **picture(number))
            await trio.sleep(1.0)
        await trio.sleep(60)
    heard = [[x.content for x in each.attachments] for each in bed.ingress.accepted]
    assert heard == [[b"0"], [b"1", b"2"]]


async def test_a_long_text_that_the_client_cut_is_one_message(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed("anna+")
    group = bed.server.group(GROUP, "anna_bot")
    first, second = "a" * 4_096, "b" * (LONG_TEXT + 1)
    async with bed.listening() as server:
        server.say(group, ZOE, first)
        server.say(group, SAM, "hm")
        server.say(group, ZOE, second)
        server.say(group, ZOE, "the end")
        await trio.sleep(60)
        server.say(group, ZOE, "now?")
        await trio.sleep(60)
        server.say(group, ZOE, first)
        server.say(group, ZOE, "/stop")
        await trio.sleep(60)
    whole = f"{first}\n{second}\nthe end"
    assert bed.texts() == [whole, "hm", "now?", first, "/stop"]


async def test_texts_that_waited_while_nobody_listened_are_not_one(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed()
    chat = bed.server.private(1, "anna_bot")
    texts = ["a" * 4_096, "the end", "b" * 4_096, "c" * 4_096, "so?"]
    for text, now in zip(texts, (1_000, 1_009, 1_012, 1_600, 4_000), strict=True):
        bed.server.now = now
        bed.server.say(chat, ZOE, text)
    async with bed.listening():
        await trio.sleep(60)
    assert bed.texts() == ["\n".join(texts[:2]), *texts[2:]]


async def test_an_answer_to_something_else_does_not_go_on_with_a_long_text(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed()
    chat = bed.server.private(1, "anna_bot")
    async with bed.listening() as server:
        asked = server.say(chat, ZOE, "tea or coffee?")
        first = server.say(chat, ZOE, "a" * 4_096, reply_to_message=asked)
        server.say(chat, ZOE, "b" * 4_096, reply_to_message=asked)
        server.say(chat, ZOE, "c" * 4_096)
        server.say(chat, ZOE, "tea", reply_to_message=first)
        await trio.sleep(60)
    whole = "\n".join(letter * 4_096 for letter in "abc")
    assert bed.texts() == ["tea or coffee?", whole, "tea"]


async def test_who_writes_long_texts_without_a_pause_is_heard_meanwhile(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed()
    chat = bed.server.private(1, "anna_bot")
    async with bed.listening() as server:
        for _ in range(30):
            server.now += 1
            server.say(chat, ZOE, "a" * 3_000)
            await trio.sleep(1)
        heard = bed.texts()
    assert len(heard) == 2
    assert len(heard[0]) < 12 * 3_001


async def test_over_a_slow_connection_an_album_is_waited_for(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed()
    chat = bed.server.private(1, "anna_bot")
    bed.server.files |= {f"p{number}": b"%d" % number for number in range(2)}
    async with bed.listening() as server:
        server.say(chat, ZOE, **picture(0))
        await trio.sleep(0.5)
        server.silence = trio.Event()
        server.say(chat, ZOE, **picture(1))
        await trio.sleep(2 * ALBUM_PAUSE)
        server.silence.set()
        await trio.sleep(60)
    assert [len(each.attachments) for each in bed.ingress.accepted] == [2]


async def test_two_people_with_long_texts_do_not_wait_for_each_other(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed("anna+")
    group = bed.server.group(GROUP, "anna_bot")
    texts = ["a" * 4_096, "b" * 4_096]
    async with bed.listening() as server:
        for text, who in zip(texts, (ZOE, SAM), strict=True):
            server.say(group, who, text)
        await trio.sleep(ALBUM_PAUSE + 0.1)
    assert bed.texts() == texts


async def test_a_part_that_telegram_forgot_keeps_no_other_text_back(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed()
    chat = bed.server.private(1, "anna_bot")
    bed.server.files["p0"] = b"0"
    async with bed.listening() as server:
        server.say(chat, ZOE, **picture(0))
        server.say(chat, ZOE, "a" * 4_096)
        await trio.sleep(ALBUM_PAUSE / 2)
    bed.bot().updates.clear()
    async with bed.listening() as server:
        server.say(chat, ZOE, "b" * 4_096)
        await trio.sleep(60)
    assert bed.texts() == ["b" * 4_096]


async def test_a_picture_that_comes_late_comes_by_itself(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed()
    chat = bed.server.private(1, "anna_bot")
    bed.server.files |= {f"p{number}": b"%d" % number for number in range(4)}
    async with bed.listening() as server:
        for number in range(2):
            server.say(chat, ZOE, **picture(number))
        await trio.sleep(2 * ALBUM_PAUSE)
        for number in range(2, 4):
            server.say(chat, ZOE, **picture(number))
        heard = [await bed.ingress.next_or_wait() for _ in range(2)]
        await trio.sleep(60)
    assert [len(each.attachments) for each in heard] == [2, 2]
    assert len(bed.ingress.accepted) == 2


async def test_of_a_stranger_nothing_is_fetched(autojump_clock: MockClock) -> None:
    del autojump_clock
    bed = BotBed()
    chat = bed.server.private(1, "anna_bot")
    bed.server.files["voice"] = b"bytes"
    bed.ingress.strangers.add("1")
    async with bed.listening() as server:
        server.say(chat, ZOE, voice=VOICE)
        await bed.wait(lambda: len(bed.ingress.turned_away) == 1)
        assert server.count("getFile") == 0


@pytest.mark.parametrize(
    ("size", "told"),
    [(10, "above 8 bytes"), (0, "above 8 bytes"), (None, "wrong file_id")],
)
async def test_what_cannot_be_had_is_said_and_the_words_come_all_the_same(
    size: int | None, told: str, autojump_clock: MockClock
) -> None:
    del autojump_clock
    bed = BotBed(max_media_bytes=8)
    chat = bed.server.private(1, "anna_bot")
    if size is not None:
        bed.server.files["voice"] = b"0123456789"
    async with bed.listening() as server:
        server.say(chat, ZOE, caption="hear", voice={**VOICE, "file_size": size or 0})
        inbound = await bed.ingress.next()
    assert inbound.text.startswith("hear\n[audio voice.ogg was not fetched: ")
    assert told in inbound.text
    assert inbound.attachments == ()
    assert bed.counted("updates_total", outcome="media_left_out") == 1


async def test_a_telegram_that_is_busy_costs_no_file(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed()
    chat = bed.server.private(1, "anna_bot")
    bed.server.files["voice"] = b"bytes"
    async with bed.listening() as server:
        server.faults.append(("getFile", refusal(502)))
        server.faults.append(("getFile", httpx.ReadError("reset")))
        server.say(chat, ZOE, voice=VOICE)
        assert len((await bed.ingress.next_or_wait()).attachments) == 1


async def test_the_token_is_in_no_log_and_no_error(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    del autojump_clock
    caplog.set_level(logging.DEBUG)
    bed = BotBed()
    chat = bed.server.private(1, "anna_bot")
    token = next(iter(bed.server.bots))
    bed.server.files["voice"] = b"bytes"
    async with bed.listening() as server:
        server.faults.append(("getUpdates", httpx.ReadError("reset")))
        server.say(chat, ZOE, voice=VOICE)
        await bed.ingress.next_or_wait()
        server.is_down = True
        server.say(chat, ZOE, "hi")
        await bed.wait(lambda: bed.transport.trouble != "")
    assert any(token in url for url in bed.server.urls)
    assert "getUpdates" in caplog.text
    assert token not in caplog.text
    assert token.partition(":")[2] not in caplog.text
    assert token not in bed.transport.trouble
