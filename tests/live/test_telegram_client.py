"""Proves that the fake Bot API is one: python-telegram-bot 22.8 lives with it.

The library runs in an environment of its own (`setup_telegram.sh`) against the server
that all tests of the connector use. It checks the shape of each answer, and knows by
the words and numbers of a refusal which of its errors that is.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio

from tests.fakes.telegram.api import FakeTelegram, refusal
from tests.fakes.telegram.chats import Chat
from tests.fakes.telegram.server import on_a_socket
from tests.processes.running import ROOT
from tests.support.chat.telegram_bed import GROUP, ZOE

pytestmark = pytest.mark.live

PYTHON = ROOT / ".live" / "telegram" / "bin" / "python"

SCRIPT = r"""
import asyncio, json, sys
from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup, ReactionTypeEmoji
from telegram import ReplyParameters
from telegram.error import TelegramError
from telegram.ext import Application, CallbackQueryHandler, MessageHandler, filters

URL, TOKEN, GROUP = sys.argv[1], sys.argv[2], int(sys.argv[3])
ODD = ReactionTypeEmoji("\u2705")
BASE = {"base_url": f"{URL}/bot", "base_file_url": f"{URL}/file/bot"}

async def named(what):
    try:
        await what
    except TelegramError as error:
        return [type(error).__name__, getattr(error, "new_chat_id", 0)]
    return None

async def by_hand(bot, found):
    me = await bot.get_me()
    found["me"] = [me.id, me.username, me.is_bot, me.can_read_all_group_messages]
    said = await bot.send_message(1, "<b>hi</b> 2 &lt; 3", parse_mode="HTML")
    found["said"] = [said.message_id, said.text, said.chat.type, said.entities[0].type]
    edited = await bot.edit_message_text("ho", 1, said.message_id)
    found["edited"] = edited.text
    found["same"] = await named(bot.edit_message_text("ho", 1, said.message_id))
    found["sign"] = await bot.set_message_reaction(1, said.message_id, "\U0001f440")
    found["odd sign"] = await named(bot.set_message_reaction(1, said.message_id, ODD))
    found["flood"] = await named(bot.send_chat_action(1, "typing"))
    found["typing"] = await bot.send_chat_action(1, "typing")
    found["unread"] = await named(bot.send_message(1, "<b>hi", parse_mode="HTML"))
    found["long"] = await named(bot.send_message(1, "x" * 4097))
    found["nobody"] = await named(bot.send_message(999, "x"))
    reply = ReplyParameters(777)
    found["no reply"] = await named(bot.send_message(1, "x", reply_parameters=reply))
    found["no topic"] = await named(bot.send_message(1, "x", message_thread_id=5))
    found["admins"] = [a.user.id for a in await bot.get_chat_administrators(GROUP)]
    found["member"] = (await bot.get_chat_member(GROUP, me.id)).status
    file = await bot.get_file("voice")
    found["file"] = bytes(await file.download_as_bytearray()).decode()
    found["deleted"] = await bot.delete_message(1, said.message_id)
    found["moved"] = await named(bot.send_message(-5, "x"))
    await bot.set_webhook("https://bots.test", secret_token="abc")
    found["webhook"] = (await bot.get_webhook_info()).url
    found["conflict"] = await named(bot.get_updates())
    await bot.delete_webhook()
    found["stranger"] = await named(Bot("9:" + "x" * 35, **BASE).get_me())

async def by_itself(found):
    heard, done = found["heard"], asyncio.Event()

    async def on_text(update, context):
        message = update.message
        heard.append([message.text, message.from_user.first_name, message.chat.type])
        button = InlineKeyboardButton("press", callback_data="skill:1")
        await message.reply_text("?", reply_markup=InlineKeyboardMarkup([[button]]))

    async def on_press(update, context):
        await update.callback_query.answer("done")
        heard.append(update.callback_query.data)
        done.set()

    app = Application.builder().token(TOKEN).base_url(BASE["base_url"]).build()
    app.add_handler(MessageHandler(filters.TEXT, on_text))
    app.add_handler(CallbackQueryHandler(on_press))
    async with app:
        await app.start()
        await app.updater.start_polling(timeout=2)
        print("listening", flush=True)
        await asyncio.wait_for(done.wait(), 20)
        await app.updater.stop()
        await app.stop()

async def main():
    found = {"heard": []}
    async with Bot(TOKEN, **BASE) as bot:
        await by_hand(bot, found)
    await by_itself(found)
    print(json.dumps(found))

asyncio.run(main())
"""

EXPECTED = {
    "me": [7, "anna_bot", True, False],
    "said": [8, "hi 2 < 3", "private", "bold"],
    "edited": "ho",
    "same": ["BadRequest", 0],
    "sign": True,
    "odd sign": ["BadRequest", 0],
    "typing": True,
    "unread": ["BadRequest", 0],
    "long": ["BadRequest", 0],
    "nobody": ["BadRequest", 0],
    "no reply": ["BadRequest", 0],
    "no topic": ["BadRequest", 0],
    "admins": [1],
    "member": "member",
    "file": "bytes",
    "deleted": True,
    "flood": ["RetryAfter", 0],
    "moved": ["ChatMigrated", GROUP],
    "webhook": "https://bots.test",
    "conflict": ["Conflict", 0],
    "stranger": ["InvalidToken", 0],
    "heard": [["hello", "Zoe", "private"], "skill:1"],
}


async def test_a_client_that_nobody_here_wrote_lives_with_the_fake(
    tmp_path: Path,
) -> None:
    assert PYTHON.exists(), "run tests/live/setup.sh first"
    script = tmp_path / "client.py"
    script.write_text(SCRIPT, encoding="utf-8")
    server = FakeTelegram()
    token = server.bot(7, "anna_bot")
    chat = server.private(1, "anna_bot")
    server.group(GROUP, "anna_bot").admins.append(1)
    server.group(-5, "anna_bot", kind="group").moved_to = GROUP
    server.files["voice"] = b"bytes"
    wait = refusal(429, "Too Many Requests: retry after 3", {"retry_after": 3})
    server.faults.append(("sendChatAction", wait))
    async with on_a_socket(server) as url, trio.open_nursery() as nursery:
        command = [str(PYTHON), str(script), url, token, str(GROUP)]
        nursery.start_soon(talk, server, chat)
        with trio.fail_after(60):
            done = await trio.run_process(command, capture_stdout=True)
        nursery.cancel_scope.cancel()
    assert json.loads(done.stdout.decode().splitlines()[-1]) == EXPECTED
    assert chat.texts(server.named("anna_bot"))[-1] == "?"


async def talk(server: FakeTelegram, chat: Chat) -> None:
    """Write when the library polls, and press what it shows."""
    bot = server.named("anna_bot")
    while not bot.polls:
        await server.wait_change()
    server.say(chat, ZOE, "hello")
    while not chat.by(bot) or "reply_markup" not in chat.by(bot)[-1]:
        await server.wait_change()
    server.press(chat, ZOE, bot, "skill:1")
