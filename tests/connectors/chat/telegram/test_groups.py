"""Groups: several bots, who is called, moves, admins, commands and buttons."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from actors.errors import DeliveryRefusedError
from actors.messages.inbound import Address, Quoted
from connectors.app.assembly import load_voices
from connectors.chat.telegram.account import TelegramAccount
from connectors.chat.telegram.listener import NAME_EVERY
from tests.fakes.telegram.chats import Json
from tests.support.chat.telegram_bed import BASIC, GROUP, SAM, ZOE, BotBed, delivery


def called(text: str, name: str) -> Json:
    """Mark a name in a text."""
    place = text.index(name)
    return {"entities": [{"type": "mention", "offset": place, "length": len(name)}]}


@pytest.mark.parametrize(("number", "kind"), [(GROUP, "supergroup"), (BASIC, "group")])
async def test_what_two_bots_hear_is_handed_in_once_and_answered_by_each(
    number: int, kind: str, autojump_clock: MockClock
) -> None:
    del autojump_clock
    bed = BotBed("anna+", "ben+")
    chat = bed.server.group(number, "anna_bot", "ben_bot", kind=kind)
    async with bed.listening() as server:
        for text in ("one", "one", "two"):
            server.say(chat, ZOE, text)
        await bed.wait(lambda: not bed.bot("anna").updates + bed.bot("ben").updates)
        assert bed.texts() == ["one", "one", "two"]
        last = bed.ingress.accepted[-1]
        assert (last.present, last.is_direct) == (("anna", "ben"), False)
        for agent in ("anna", "ben"):
            said = delivery(
                "yes", agent, address=last.address, reply_to=last.platform_id
            )
            await bed.transport.deliver(said)
            (message,) = chat.by(bed.bot(agent))
            assert message["reply_to_message"]["text"] == "two"


async def test_with_privacy_only_what_concerns_a_bot_is_heard(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed("anna", "ben")
    chat = bed.server.group(GROUP, "anna_bot", "ben_bot")
    async with bed.listening() as server:
        server.say(chat, ZOE, "good morning all")
        text = "\U0001f98a @ben_bot and @anna_bot?"
        server.say(
            chat,
            ZOE,
            text,
            entities=[
                {"type": "mention", "offset": 3, "length": 8},
                {"type": "mention", "offset": 16, "length": 9},
            ],
        )
        inbound = await bed.ingress.next()
        words = "\U0001f98a @ben and @anna?"  # as agents are called
        assert (inbound.text, inbound.mentions) == (words, ("anna", "ben"))
    assert len(bed.ingress.accepted) == 1


async def test_each_bot_has_a_menu_of_the_commands_that_everybody_may_use(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed("anna", "ben")
    async with bed.listening() as server:
        server.say(server.private(ZOE["id"], "ben_bot"), ZOE, "hello")
        await bed.ingress.next()
    for agent in ("anna", "ben"):
        words = [each["command"] for each in bed.bot(agent).menus[""]]
        assert {"help", "stop", "who"} <= set(words)
        assert "pair" not in words


async def test_the_menu_is_in_the_language_of_whoever_sees_it() -> None:
    await trio.lowlevel.checkpoint()
    bed, voices = BotBed(), load_voices()
    config, network = bed.config, bed.server.network
    bot = TelegramAccount("anna", config.accounts["anna"], config, network)
    async with bot.api:
        await bot.make_menus(voices)
    menus = bed.bot().menus
    assert set(menus) == {"", *voices.languages} - {"en"}
    told = {each: menus[each][0]["description"] for each in ("", "de")}
    assert told == {"": "show this list", "de": "zeigt diese Liste"}


async def test_a_bot_that_is_renamed_is_called_by_its_new_name(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed("anna+")
    chat = bed.server.group(GROUP, "anna_bot")
    async with bed.listening() as server:
        bed.bot().username = "nina_bot"
        await trio.sleep(2 * NAME_EVERY)
        server.say(chat, ZOE, "@nina_bot hi", **called("@nina_bot hi", "@nina_bot"))
        inbound = await bed.ingress.next_or_wait()
    assert (inbound.text, inbound.mentions) == ("@anna hi", ("anna",))


async def test_a_reply_calls_who_is_replied_to_and_brings_its_words(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed("anna+", "ben+")
    chat = bed.server.group(GROUP, "anna_bot", "ben_bot")
    here = Address("telegram", str(GROUP))
    async with bed.listening() as server:
        receipt = await bed.transport.deliver(delivery("Tea?", "ben", address=here))
        (asked,) = chat.by(bed.bot("ben"))
        server.say(chat, ZOE, "yes", reply_to_message=asked)
        inbound = await bed.ingress.next()
    assert inbound.quoted == Quoted("Tea?", "ben", "ben")
    assert (inbound.mentions, inbound.reply_to) == (("ben",), receipt)


async def test_a_command_for_a_bot_is_one_for_its_agent(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed("anna", "ben")
    chat = bed.server.group(GROUP, "anna_bot", "ben_bot")
    async with bed.listening() as server:
        for text in ("/stop@ben_bot all", "/who"):
            length = len(text.split()[0])
            mark = {"type": "bot_command", "offset": 0, "length": length}
            server.say(chat, ZOE, text, entities=[mark])
        got = [await bed.ingress.next(), await bed.ingress.next()]
        first, second = sorted(got, key=lambda each: each.text)
    assert (first.text, first.mentions) == ("/stop@ben all", ("ben",))
    assert (second.text, second.mentions) == ("/who", ())
    assert len(bed.ingress.accepted) == 2


async def test_admins_are_known_and_asked_for_once(autojump_clock: MockClock) -> None:
    del autojump_clock
    bed = BotBed("anna+")
    chat = bed.server.group(GROUP, "anna_bot")
    chat.admins.append(1)
    anonymous = {"id": 1087968824, "is_bot": True, "first_name": "Group"}
    async with bed.listening() as server:
        server.say(chat, ZOE, "a")
        server.say(chat, SAM, "b")
        server.say(chat, anonymous, "c", sender_chat=chat.facts)
        got = [await bed.ingress.next() for _ in range(3)]
        assert server.count("getChatAdministrators") == 1
    assert [each.roles for each in got] == [("admin",), (), ("admin",)]
    assert (got[2].sender_id, got[2].sender_name) == (str(GROUP), "The room")
    assert not got[2].is_bot


async def test_a_group_that_moved_is_the_same_conversation(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed("anna+")
    chat = bed.server.group(BASIC, "anna_bot", kind="group")
    old = Address("telegram", str(BASIC))
    async with bed.listening() as server:
        new = server.migrate(chat, GROUP)
        server.say(new, ZOE, "still here?")
        inbound = await bed.ingress.next()
        assert inbound.address == old
        await bed.transport.deliver(
            delivery("yes", address=old, reply_to=inbound.platform_id)
        )
    assert new.texts(bed.bot()) == ["yes"]
    bed.transport = bed.make()
    async with bed.listening():
        # A new process learns of it from the refusal.
        await bed.transport.deliver(delivery("and again", address=old))
    assert new.texts(bed.bot()) == ["yes", "and again"]
    assert bed.bookmarks.moves == {GROUP: BASIC}


async def test_a_bot_that_leaves_is_no_longer_there(autojump_clock: MockClock) -> None:
    del autojump_clock
    bed = BotBed("anna+", "ben+")
    chat = bed.server.group(GROUP, "anna_bot", "ben_bot")
    async with bed.listening() as server:
        server.say(chat, ZOE, "a")
        assert (await bed.ingress.next()).present == ("anna", "ben")
        ben = bed.bot("ben")
        del chat.bots[ben.id]
        left = {"status": "left", "user": ben.user}
        ben.tell("my_chat_member", {"chat": chat.facts, "new_chat_member": left})
        server.note_change()
        await bed.wait(lambda: not ben.updates)
        server.say(chat, ZOE, "b")
        assert (await bed.ingress.next()).present == ("anna",)


async def test_a_pressed_button_is_a_command_of_whoever_presses_it(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed()
    chat = bed.server.private(1, "anna_bot")
    async with bed.listening() as server:
        text = "may I? — /approve 3F or /deny 3F, 9 s"
        await bed.transport.deliver(delivery(text, kind="notice"))
        bot = bed.bot()
        server.press(chat, ZOE, bot, "approve:3F")
        inbound = await bed.ingress.next()
        assert (inbound.text, inbound.sender_id) == ("/approve 3F", "1")
        assert inbound.address == Address("telegram", "1@anna")
        await bed.wait(lambda: len(bot.answered) == 1)
        for data in ("no-prefix", "x y:1", ":1", "a:"):
            server.press(chat, ZOE, bot, data)
        await bed.wait(lambda: len(bot.answered) == 5)
        assert len(bed.ingress.accepted) == 1
        assert bed.counted("updates_total", outcome="unknown_button") == 4


async def test_the_same_person_has_a_conversation_with_each_bot(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = BotBed("anna", "ben")
    chats = [bed.server.private(1, f"{name}_bot") for name in ("anna", "ben")]
    async with bed.listening() as server:
        for chat in chats:
            server.say(chat, ZOE, "hi")
        got = [await bed.ingress.next() for _ in chats]
        assert {each.address.chat for each in got} == {"1@anna", "1@ben"}
        assert {each.agent for each in got} == {"anna", "ben"}
        for each in got:
            said = delivery("ho", each.agent, address=each.address)
            await bed.transport.deliver(said)
        chats[1].is_blocked = True
        with pytest.raises(DeliveryRefusedError, match="blocked"):
            await bed.transport.deliver(
                delivery("?", "ben", address=Address("telegram", "1@ben"))
            )
    assert chats[0].texts(bed.bot("anna")) == ["ho"]
    assert chats[1].texts(bed.bot("ben")) == ["ho"]
