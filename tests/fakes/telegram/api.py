"""The Bot API in memory, as far as the connector asks anything of it.

`FakeTelegram` goes into `httpx.MockTransport` and works in virtual time, or onto a
socket (`server.py`), where python-telegram-bot checks it. Who hears
what, and what is refused in which words, is as the documents and servers say.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import httpx
import trio

from tests.fakes.telegram.chats import (
    Chat,
    FakeBot,
    Json,
    RefusalError,
    as_update,
    parsed,
)
from tests.fakes.telegram.files import SENT, read_params, send_file

BASE = "https://api.telegram.test"
FILES_AT = "files/"
REACTIONS = frozenset("👍👎❤🔥🎉🤩😱😢🤔🤨👏👌👀🙏🤝✍🫡")


class FakeTelegram:
    """Chats, and the bots in them."""

    def __init__(self) -> None:
        self.bots: dict[str, FakeBot] = {}
        """By token."""

        self.chats: dict[int, Chat] = {}
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        """`username method` of each request, in order."""

        self.params: list[Json] = []
        """With what each was asked."""

        self.urls: list[str] = []
        self.faults: deque[tuple[str, httpx.Response | Exception | None]] = deque()
        """What the next request of this method gets instead; None: it is carried out,
        and its answer is lost."""

        self.brought: list[tuple[str, str, bytes]] = []
        """What bots sent: as what, its name, its bytes."""

        self.odd: set[str] = set()
        """Names of pictures whose shape is not taken."""

        self.is_down = False
        self.polled_at_once = 0
        """How often one question for updates ended another."""

        self.now = 1_000
        self.forgets_to_wait = False
        """Whether it answers at once, as stand-ins do."""

        self.silence = trio.Event()
        """While it is not set, a question for updates gets no answer whatever."""

        self.silence.set()
        self._changed = trio.Event()

    # --- what people do -----------------------------------------------------------

    def bot(self, number: int, username: str, *, reads_all: bool = False) -> str:
        """Make a bot; gives its token."""
        token = f"{number}:{'A' * 30}{number:05d}"
        self.bots[token] = FakeBot(number, username, reads_all=reads_all)
        return token

    def named(self, username: str) -> FakeBot:
        """Give a bot by its name."""
        return next(bot for bot in self.bots.values() if bot.username == username)

    def private(self, person: int, username: str) -> Chat:
        """Open the chat of a person with a bot."""
        bot = self.named(username)
        return self._open(Chat(person, "private", {bot.id: bot}))

    def group(self, number: int, *usernames: str, kind: str = "supergroup") -> Chat:
        """Make a group with these bots."""
        bots = [self.named(each) for each in usernames]
        return self._open(Chat(number, kind, {bot.id: bot for bot in bots}))

    def _open(self, chat: Chat) -> Chat:
        self.chats[chat.key] = chat
        return chat

    def say(self, chat: Chat, sender: Json, text: str = "", **more: Any) -> Json:
        """Have somebody write; gives the message as the first bot sees it."""
        more = {"text": text, **more} if text else more
        told = chat.add(sender, self.now, **more)
        for bot in chat.bots.values():
            if chat.hears(bot, told[bot.id]):
                bot.tell("message", told[bot.id])
        self.note_change()
        return next(iter(told.values()))

    def press(self, chat: Chat, sender: Json, bot: FakeBot, data: str) -> None:
        """Have somebody press a button of the bot's last message."""
        message = chat.said[bot.id][-1]
        query = {"id": f"q{len(bot.updates)}", "from": sender, "chat_instance": "1"}
        bot.tell("callback_query", {**query, "message": message, "data": data})
        self.note_change()

    def migrate(self, chat: Chat, number: int) -> Chat:
        """Make a supergroup of a group."""
        new = self._open(Chat(number, "supergroup", chat.bots))
        admin = {"id": 1, "is_bot": False, "first_name": "Zoe"}
        for old, key in ((chat, "migrate_to_chat_id"), (new, "migrate_from_chat_id")):
            other = new.id if old is chat else chat.id
            more: Json = {key: other}
            told = old.add(admin, self.now, **more)
            for bot in chat.bots.values():
                bot.tell("message", told[bot.id])
        chat.moved_to = number
        self.note_change()
        return new

    def note_change(self) -> None:
        """Wake whoever waits for news."""
        self._changed.set()
        self._changed = trio.Event()

    async def wait_change(self) -> None:
        """Wait until something happens."""
        await self._changed.wait()

    # --- what is there --------------------------------------------------------------

    def count(self, method: str) -> int:
        """Count the requests of a method."""
        return sum(each.endswith(f" {method}") for each in self.asked)

    def asked_with(self, method: str) -> list[Json]:
        """Give what a method was asked with."""
        pairs = zip(self.asked, self.params, strict=True)
        return [params for name, params in pairs if name.endswith(f" {method}")]

    # --- the wire ---------------------------------------------------------------------

    @property
    def network(self) -> httpx.MockTransport:
        """What carries requests here."""
        return httpx.MockTransport(self.handle)

    async def handle(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        await trio.lowlevel.checkpoint()
        path = request.url.path
        self.urls.append(str(request.url))
        if self.is_down:
            raise httpx.ConnectError("connection refused")
        if path.startswith("/file/bot"):
            return self._file(path)
        token, _, method = path.removeprefix("/bot").partition("/")
        fault = self._fault(method)
        if isinstance(fault, Exception):
            raise fault
        if isinstance(fault, httpx.Response):
            return fault
        bot = self.bots.get(token)
        if bot is None:
            return told(RefusalError(401, "Unauthorized"))
        await request.aread()
        params = read_params(request)
        self.asked.append(f"{bot.username} {method}")
        self.params.append(params)
        if method == "getUpdates" and not self.silence.is_set():
            await self._be_silent(request)
        response = await self._carry_out(bot, method, params)
        if fault == "lost":
            raise httpx.ReadError("connection reset")
        return response

    async def _be_silent(self, request: httpx.Request) -> None:
        with trio.move_on_after(request.extensions["timeout"]["read"]) as waiting:
            await self.silence.wait()
        if waiting.cancelled_caught:
            raise httpx.ReadTimeout("")

    def _fault(self, method: str) -> httpx.Response | Exception | str:
        for fault in tuple(self.faults):
            if fault[0] == method:
                self.faults.remove(fault)
                return "lost" if fault[1] is None else fault[1]
        return ""

    async def _carry_out(
        self, bot: FakeBot, method: str, params: Json
    ) -> httpx.Response:
        try:
            if method == "getUpdates":
                return ok(await self._updates(bot, params))
            answers: dict[str, Callable[[FakeBot, Json], object]] = {
                "getMe": lambda bot, _: bot.me,
                "setMyCommands": lambda bot, params: bot.set_menu(params),
                "setWebhook": self._set_webhook,
                "deleteWebhook": self._set_webhook,
                "getWebhookInfo": lambda bot, _: bot.webhook,
                "sendMessage": self._send,
                **dict.fromkeys(SENT, partial(send_file, self)),
                "editMessageText": self._edit,
                "deleteMessage": self._delete,
                "setMessageReaction": self._react,
                "sendChatAction": self._act,
                "answerCallbackQuery": self._answer,
                "getFile": self._place,
                "getChatMember": self._member,
                "getChatAdministrators": self._admins,
            }
            if method not in answers:
                return told(RefusalError(404, "Not Found"))
            return ok(answers[method](bot, params))
        except RefusalError as error:
            return told(error)

    # --- updates ----------------------------------------------------------------------

    async def _updates(self, bot: FakeBot, params: Json) -> list[Json]:
        if bot.webhook["url"]:
            raise RefusalError(
                409,
                "Conflict: can't use getUpdates method while webhook is active; use"
                " deleteWebhook to delete the webhook first",
            )
        bot.forget(int(params.get("offset") or 0))
        polls = bot.polls = bot.polls + 1
        self.note_change()  # ends an earlier question, as Telegram does
        hold = 0 if self.forgets_to_wait else int(params.get("timeout") or 0)
        kinds = params.get("allowed_updates") or ()
        with trio.move_on_after(hold):
            while not bot.updates and bot.polls == polls:
                await self._changed.wait()
        if bot.polls != polls:
            self.polled_at_once += 1
            raise RefusalError(
                409,
                "Conflict: terminated by other getUpdates request; make sure that only"
                " one bot instance is running",
            )
        wanted = [
            each for each in bot.updates if not kinds or kinds_of(each) & {*kinds}
        ]
        return wanted[: int(params.get("limit") or 100)]

    def _set_webhook(self, bot: FakeBot, params: Json) -> object:
        url = str(params.get("url") or "")
        bot.secret = str(params.get("secret_token") or "")
        bot.webhook = {
            "url": url,
            "has_custom_certificate": False,
            "pending_update_count": len(bot.updates),
        }
        if params.get("drop_pending_updates"):
            bot.updates.clear()
        return True

    # --- messages ---------------------------------------------------------------------

    def chat(self, bot: FakeBot, params: Json) -> Chat:
        """Give the chat that a request is about."""
        number = int(params["chat_id"])
        chat = self.chats.get(number if number < 0 else hash((number, bot.id)))
        if chat is None:
            raise RefusalError(400, "Bad Request: chat not found")
        if chat.moved_to:
            text = "Bad Request: group chat was upgraded to a supergroup chat"
            raise RefusalError(400, text, migrate_to_chat_id=chat.moved_to)
        if bot.id not in chat.bots:
            raise RefusalError(403, "Forbidden: bot is not a member of the group chat")
        if chat.is_blocked:
            raise RefusalError(403, "Forbidden: bot was blocked by the user")
        if trio.current_time() < chat.held_until:
            left = chat.held_until - trio.current_time()
            text = f"Too Many Requests: retry after {left:.0f}"
            raise RefusalError(429, text, retry_after=max(1, round(left)))
        return chat

    def _send(self, bot: FakeBot, params: Json) -> object:
        chat = self.chat(bot, params)
        more = {**parsed(params), **chat.placed(bot, params)}
        if params.get("reply_markup"):
            more["reply_markup"] = params["reply_markup"]
        message = chat.add(bot.user, self.now, only=bot, **more)[bot.id]
        self.note_change()
        return message

    def _edit(self, bot: FakeBot, params: Json) -> object:
        message = self.chat(bot, params).find(bot, params, "message to edit not found")
        new = parsed(params)
        if message["text"] == new["text"] and message["entities"] == new["entities"]:
            text = "Bad Request: message is not modified: specified new message content"
            raise RefusalError(400, text)
        message.update(new)
        self.note_change()
        return message

    def _delete(self, bot: FakeBot, params: Json) -> object:
        chat = self.chat(bot, params)
        chat.said[bot.id].remove(chat.find(bot, params, "message to delete not found"))
        return True

    def _react(self, bot: FakeBot, params: Json) -> object:
        chat = self.chat(bot, params)
        message = chat.find(bot, params, "message to react not found")
        signs = [str(each.get("emoji")) for each in params.get("reaction") or ()]
        if len(signs) > 1 or not REACTIONS.issuperset(signs):
            raise RefusalError(400, "Bad Request: REACTION_INVALID")
        chat.signs[bot.id, message["message_id"]] = signs
        return True

    def _act(self, bot: FakeBot, params: Json) -> object:
        chat = self.chat(bot, params)
        thread = int(params.get("message_thread_id") or 0)
        chat.typing.append((bot.username, thread))
        self.note_change()
        return True

    def _answer(self, bot: FakeBot, params: Json) -> object:
        bot.answered.append((str(params["callback_query_id"]), params.get("text")))
        self.note_change()
        return True

    # --- members and files ------------------------------------------------------------

    def _member(self, bot: FakeBot, params: Json) -> object:
        chat = self.chat(bot, params)
        user = {"id": int(params["user_id"]), "is_bot": True, "first_name": "b"}
        return {"status": "member", "user": user, "in": chat.id}

    def _admins(self, bot: FakeBot, params: Json) -> object:
        return [
            {
                "status": "creator",
                "is_anonymous": False,
                "user": {"id": each, "is_bot": False, "first_name": "a"},
            }
            for each in self.chat(bot, params).admins
        ]

    def _place(self, bot: FakeBot, params: Json) -> object:
        del bot
        name = str(params["file_id"])
        if name not in self.files:
            raise RefusalError(400, "Bad Request: wrong file_id")
        if len(self.files[name]) > 20_000_000:
            raise RefusalError(400, "Bad Request: file is too big")
        return {
            "file_id": name,
            "file_unique_id": name,
            "file_path": f"{FILES_AT}{name}",
        }

    def _file(self, path: str) -> httpx.Response:
        token, _, place = path.removeprefix("/file/bot").partition("/")
        name = place.removeprefix(FILES_AT)
        if token not in self.bots or name not in self.files:
            return httpx.Response(404)
        return httpx.Response(200, content=self.files[name])


def kinds_of(update: Json) -> set[str]:
    """Say what is in an update."""
    return {*as_update(update)}


def ok(result: object) -> httpx.Response:
    """Answer with a result."""
    return httpx.Response(200, json={"ok": True, "result": result})


def told(error: RefusalError) -> httpx.Response:
    """Answer with a refusal."""
    body: Json = {"ok": False, "error_code": error.status, "description": str(error)}
    if error.parameters:
        body["parameters"] = error.parameters
    return httpx.Response(error.status, json=body)


def refusal(
    status: int, text: str = "", parameters: Mapping[str, object] | None = None
) -> httpx.Response:
    """Make a refusal for a fault."""
    return told(RefusalError(status, text, **dict(parameters or {})))
