"""What QQ is to the rest of the program: settings, checks, limits."""

import importlib.util
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct

from actors.config.values import Name
from actors.rules.prompt.texts import MEDIA_MARKS, ReplyStyle
from actors.rules.text.measure import TABLE_ROW, Measure
from connectors.chat.platforms import MB, Platform, PlatformLimits, always
from connectors.config.app import AppConfig, ChatConfig
from connectors.config.checks import Way, check_address, unknown
from runtime.config.loader import Complaint, GivenSecret

API = "https://api.sgroup.qq.com"
TOKENS = "https://bots.qq.com/app/getAppAccessToken"


class QQAccountConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The bot of one agent."""

    app_id: Annotated[str, Meta(min_length=1, max_length=32)]
    """The bot's AppID, all digits."""

    app_secret: GivenSecret
    """Its AppSecret, with which access tokens are asked for."""


class QQConfig(ChatConfig, frozen=True, kw_only=True, tag="qq"):
    """Which agents have bots on QQ."""

    accounts: Annotated[dict[Name, QQAccountConfig], Meta(min_length=1)]
    """By the agent's name."""

    guilds: bool = True
    """Whether the bots also hear what is said to them in channels (频道), and in direct
    messages there. QQ ends the connection of a bot that lacks this permission."""

    outside_window: Literal["keep", "refuse"] = "keep"
    """What becomes of an answer that QQ does not accept because nobody has written
    lately: it is kept for a day and sent if somebody writes again, or it fails at once
    and waits for `callboard queue retry`."""

    on_unknown: Literal["resend", "hold"] = "resend"
    """What is done about an answer that QQ has not confirmed, though it may have sent
    it: send it again, or hold it until `callboard queue retry` or `drop`. QQ itself
    leaves out a repeated answer, except in channels."""

    request_timeout: Annotated[float, Meta(ge=5, le=86_400)] = 30.0
    """Seconds a request may take in all; QQ asks for at least 5."""

    api: Annotated[str, Meta(min_length=1)] = API
    """Where requests go; `https://sandbox.api.sgroup.qq.com` is for trying things."""

    token_url: Annotated[str, Meta(min_length=1)] = TOKENS
    """Where access tokens are asked for."""

    files: tuple[str, ...] = (
        "https://multimedia.nt.qq.com.cn",
        "https://gchat.qpic.cn",
        "https://grouptalk.c2c.qq.com",
    )
    """From where files are fetched; from nowhere else."""


LIBRARY = "wsproto"


def check(mine: Mapping[str, QQConfig], app: AppConfig) -> Iterator[Complaint]:
    """Check every connector of this kind."""
    bots: dict[str, Way] = {}
    for name, connector in mine.items():
        way: Way = ("connectors", name)
        if importlib.util.find_spec(LIBRARY) is None:
            text = "it needs wsproto, which is not installed"
            yield Complaint(way, text, "pip install 'callboard[websocket]'")
        yield from check_accounts(way, connector, app, bots)
        for key, address, example in (
            ("api", connector.api, API),
            ("token_url", connector.token_url, TOKENS),
        ):
            yield from check_address(
                (*way, key), address, has_key=True, example=example
            )
        for index, address in enumerate(connector.files):
            place = (*way, "files", index)
            yield from check_address(place, address, has_key=False, example=API)


def check_accounts(
    way: Way, config: QQConfig, app: AppConfig, bots: dict[str, Way]
) -> Iterator[Complaint]:
    """Check whose bots there are."""
    for agent, account in config.accounts.items():
        here = (*way, "accounts", agent)
        yield from unknown(here, "agent", agent, app.agents)
        app_id = account.app_id
        if not (app_id.isascii() and app_id.isdigit()):
            text = f"{app_id!r} is no AppID: it has digits only"
            hint = "copy it from q.qq.com > the bot > 开发 > 开发设置"
            yield Complaint((*here, "app_id"), text, hint)
        first = bots.setdefault(app_id, here)
        if first != here:
            text = f"bot {app_id} is that of {'.'.join(map(str, first))} already"
            yield Complaint((*here, "app_id"), text, "make a bot for each agent")


# Source: QQ, "发送消息": 5 answers to one message, 5 messages a second in a channel.
# Seen: texts of 4,000 characters go through, and files of 10 MB as base64.
CALLING = {"<": 2, "@": 2}
"""Characters behind which a joint may follow, in code, too; see `markup.py`."""

PLATFORM = Platform(
    package="connectors.chat.qq",
    config=QQConfig,
    check=check,
    only_calls=always,
    name="QQ",
    extra="websocket",
    limits=PlatformLimits(
        measure=Measure(CALLING, CALLING, is_utf16=True, table_row=TABLE_ROW),
        text=4_000,
        part=3_800,
        caption=4_000,
        upload_bytes=10 * MB,
        image_bytes=10 * MB,
    ),
    dialect="QQ",
    reply_style=ReplyStyle(
        "You write on QQ. No markup is shown: write plain text. One message can be"
        " answered five times at most, so be brief and say all at once. Web addresses"
        " may be left out by QQ: rather say where something is found.",
        MEDIA_MARKS,
    ),
    is_public=True,
)
