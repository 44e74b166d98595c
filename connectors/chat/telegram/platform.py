"""What Telegram is to the rest of the program: settings, checks, limits."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from actors.config.values import Name, Pace, Seconds
from actors.rules.prompt.texts import MEDIA_MARKS, ReplyStyle
from actors.rules.text.measure import TABLE_ROW, Measure
from connectors.chat.platforms import MB, Platform, PlatformLimits
from connectors.config.app import AppConfig, ChatConfig
from connectors.config.checks import Way, check_address, unknown
from runtime.config.loader import Complaint, GivenSecret
from runtime.secret import Secret


class TelegramAccountConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The bot of one agent."""

    token: GivenSecret
    """As @BotFather gave it: `123456:ABC…`."""

    webhook_secret: Secret | None = None
    """With `mode = "webhook"`: the secret that Telegram sends with each message."""


class TelegramConfig(ChatConfig, frozen=True, kw_only=True, tag="telegram"):
    """Which agents have bots, and how these hear."""

    accounts: Annotated[dict[Name, TelegramAccountConfig], Meta(min_length=1)]
    """By the agent's name."""

    mode: Literal["poll", "webhook"] = "poll"
    """`poll` asks Telegram for what is new and needs no address of its own; `webhook`
    has it brought to the HTTP server, behind `webhook_url`."""

    webhook_url: str = ""
    """With `webhook`: where Telegram reaches the HTTP server, as
    `https://bots.example.org`."""

    api_url: Annotated[str, Meta(min_length=1)] = "https://api.telegram.org"
    """Where the Bot API is; another for a server of your own."""

    slash_commands: bool = True
    """Whether the runtime's own commands are made known to Telegram, which then shows
    them as the bots' menu."""

    on_unknown: Literal["resend", "hold"] = "resend"
    """What is done about an answer that Telegram has not confirmed because the
    connection broke, though it may stand there: send it again, or hold it until
    `callboard queue retry` or `drop`."""

    poll_timeout: Annotated[float, Meta(ge=1, le=50)] = 30.0
    """Seconds Telegram may hold a question for news."""

    request_timeout: Seconds = 30.0
    """Seconds any other request may take in all."""

    max_media_bytes: Annotated[int, Meta(gt=0, le=2_000_000_000)] = 20_000_000
    """Largest file that is fetched with a message, in bytes; all files of one message
    have at most 40 MiB together."""

    pace: Pace = 1.0
    """Least seconds between two messages in one chat, its topics included."""

    draft_pace: Pace = 3.0
    """Least seconds between two edits of one message while it is being written."""

    per_minute: Annotated[int, Meta(ge=0, le=600)] = 20
    """Most messages and edits in one chat and minute; 0: any."""


# Source: "Authorizing your bot"; the second part is 35 letters today.
TOKEN = re.compile(r"[1-9]\d{0,15}:[A-Za-z0-9_-]{20,128}", re.ASCII)

# Source: "setWebhook", `secret_token`; the least is ours.
WEBHOOK_SECRET = re.compile(r"[A-Za-z0-9_-]{16,256}", re.ASCII)

EXAMPLE = "https://api.telegram.org"
TOKEN_HINT = "give it as @BotFather wrote it, with the number and the colon"  # noqa: S105
SECRET_HINT = "add webhook_secret: 16 letters or more of A-Z a-z 0-9 _ -"  # noqa: S105
URL_HINT = 'for example: webhook_url = "https://bots.example.org"'


def check(mine: Mapping[str, TelegramConfig], app: AppConfig) -> Iterator[Complaint]:
    """Check every connector of this kind."""
    bots: dict[str, Way] = {}
    for name, connector in mine.items():
        way: Way = ("connectors", name)
        place = (*way, "api_url")
        url = connector.api_url
        yield from check_address(place, url, has_key=True, example=EXAMPLE)
        for agent, account in connector.accounts.items():
            here = (*way, "accounts", agent)
            yield from unknown(here, "agent", agent, app.agents)
            yield from check_token(here, account, bots)
        if connector.mode == "webhook":
            yield from check_webhook(way, connector, app)


def check_token(
    way: Way, account: TelegramAccountConfig, bots: dict[str, Way]
) -> Iterator[Complaint]:
    """Check that a token is one, and no other account's."""
    if not account.token.is_set:
        return
    token = account.token.reveal().strip()
    place = (*way, "token")
    if not TOKEN.fullmatch(token):
        yield Complaint(place, "this is no bot token", TOKEN_HINT)
        return
    bot = token.partition(":")[0]
    first = bots.setdefault(bot, way)
    if first != way:
        text = f"bot {bot} is that of {'.'.join(map(str, first))} already"
        yield Complaint(place, text, "make a bot for each agent, with @BotFather")


def check_webhook(
    way: Way, config: TelegramConfig, app: AppConfig
) -> Iterator[Complaint]:
    """Check that Telegram can reach us, and that nobody else is taken for it."""
    url = urlsplit(config.webhook_url.strip())
    place = (*way, "webhook_url")
    if url.scheme != "https" or not url.hostname:
        text = "Telegram brings messages to https addresses only"
        yield Complaint(place, text, URL_HINT)
    if not app.has_http:
        text = "nobody is there to take what Telegram brings"
        yield Complaint((*way, "mode"), text, "add an HTTP server: [connectors.http]")
    for agent, account in config.accounts.items():
        here = (*way, "accounts", agent)
        secret = account.webhook_secret
        if secret is None:
            text = "without webhook_secret anybody could pass for Telegram"
            yield Complaint(here, text, SECRET_HINT)
        elif secret.is_set and not WEBHOOK_SECRET.fullmatch(secret.reveal().strip()):
            text = "Telegram takes no such secret, or it is too short"
            yield Complaint((*here, "webhook_secret"), text, SECRET_HINT)


# Source: Telegram, Bot API "sendMessage": 4,096 characters after entities parsing; of
# more than 100 marks the last are not shown, and links of more than about 9,500 bytes
# in all are refused (`ENTITIES_TOO_LONG`, tdlib/telegram-bot-api issue 165). "Bots
# FAQ": one message a second and chat, 20 a minute in a group, edits included. "Sending
# files" and "getFile": 50 MB up, photos 10, 20 MB down; captions of 1,024.
PLATFORM = Platform(
    package="connectors.chat.telegram",
    config=TelegramConfig,
    check=check,
    only_calls=lambda config: config.mode == "poll",
    name="Telegram",
    limits=PlatformLimits(
        measure=Measure({"@": 2}, {"@": 2}, is_utf16=True, table_row=TABLE_ROW),
        text=4_096,
        part=4_000,
        caption=1_024,
        typing_for=5.0,
        upload_bytes=50 * MB,
        image_bytes=10 * MB,
    ),
    dialect="Telegram",
    reply_style=ReplyStyle(
        "You write on Telegram. Bold, italics, code, links and quotes in Markdown are"
        " shown; headings and tables are not. Keep to short paragraphs.",
        MEDIA_MARKS,
    ),
    is_public=True,
)
