"""What Discord is to the rest of the program: settings, checks, limits."""

import importlib.util
from collections.abc import Iterator, Mapping
from typing import Annotated

from msgspec import Meta, Struct

from actors.config.values import Name, Pace, Seconds
from actors.rules.prompt.texts import MEDIA_MARKS, ReplyStyle
from actors.rules.text.measure import TABLE_ROW, Measure
from connectors.chat.platforms import MIB, Platform, PlatformLimits, always
from connectors.config.app import AppConfig, ChatConfig
from connectors.config.checks import Way, check_address, unknown
from runtime.config.loader import Complaint, GivenSecret


class DiscordAccountConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The bot of one agent."""

    token: GivenSecret | None = None
    """Of the bot, from the developer portal."""


class DiscordConfig(ChatConfig, frozen=True, kw_only=True, tag="discord"):
    """Which agents have bots on Discord."""

    accounts: Annotated[dict[Name, DiscordAccountConfig], Meta(min_length=1)]
    """By the agent's name."""

    message_content: bool = True
    """Whether the bots ask for the Message Content Intent: without it they read only
    what mentions them, what replies to them, and direct messages."""

    slash_commands: bool = True
    """Whether the runtime's own commands are made known to Discord, which then offers
    them to whoever writes a slash."""

    status: Annotated[str, Meta(max_length=128)] = ""
    """What people see beneath the bots' names; empty: nothing."""

    request_timeout: Seconds = 60.0
    """Seconds a request may take in all, with what Discord asks us to wait."""

    silence_timeout: Seconds = 60.0
    """Seconds without a word from the gateway after which a connection is taken for
    dead. It says something every 41."""

    backfill: Annotated[int, Meta(ge=0, le=10_000)] = 500
    """Most messages of one channel that are fetched after a gap."""

    draft_pace: Pace = 1.2
    """Least seconds between two edits of one message while it is being written."""

    api: Annotated[str, Meta(min_length=1)] = "https://discord.com/api/v10"
    """Where requests go."""

    gateway: Annotated[str, Meta(min_length=1)] = "wss://gateway.discord.gg"
    """Where the bots listen."""

    files: tuple[str, ...] = (
        "https://cdn.discordapp.com",
        "https://media.discordapp.net",
    )
    """From where files are fetched; from nowhere else."""


LIBRARY = "discord"

API = "https://discord.com/api/v10"
GATEWAY = "wss://gateway.discord.gg"
MOST_ID_DIGITS = 20


def check(mine: Mapping[str, DiscordConfig], app: AppConfig) -> Iterator[Complaint]:
    """Check every connector of this kind."""
    for name, connector in mine.items():
        way: Way = ("connectors", name)
        if importlib.util.find_spec(LIBRARY) is None:
            text = "it needs discord.py, which is not installed"
            yield Complaint(way, text, "pip install 'callboard[discord]'")
        yield from check_bots(way, connector, app)
        yield from check_addresses(way, connector)
        yield from check_owners(name, app)


def check_bots(way: Way, config: DiscordConfig, app: AppConfig) -> Iterator[Complaint]:
    """Check whose bots there are."""
    taken: dict[str, str] = {}
    for agent, account in config.accounts.items():
        here = (*way, "accounts", agent)
        yield from unknown(here, "agent", agent, app.agents)
        if account.token is None:
            hint = 'add token = { env = "DISCORD_TOKEN" }'
            yield Complaint(here, "the bot has no token", hint)
            continue
        if not account.token.is_set:
            continue
        other = taken.setdefault(account.token.reveal().strip(), agent)
        if other != agent:
            text = f"this is the token of {other!r} already"
            yield Complaint((*here, "token"), text, "give each agent its own bot")


def check_addresses(way: Way, config: DiscordConfig) -> Iterator[Complaint]:
    """Check where the bots go with their tokens."""
    yield from check_address((*way, "api"), config.api, has_key=True, example=API)
    place = (*way, "gateway")
    scheme, _, rest = config.gateway.partition("://")
    as_http = f"{'https' if scheme == 'wss' else 'http'}://{rest}"
    if scheme not in {"ws", "wss"}:
        text = f"{config.gateway!r} is no ws or wss address"
        yield Complaint(place, text, f'for example: gateway = "{GATEWAY}"')
    else:
        yield from check_address(place, as_http, has_key=True, example=GATEWAY)
    for index, address in enumerate(config.files):
        place = (*way, "files", index)
        yield from check_address(place, address, has_key=False, example=API)


def check_owners(name: str, app: AppConfig) -> Iterator[Complaint]:
    """Warn of owners that are no ids: names can be taken by anybody."""
    mine = f"{name}/"
    for index, owner in enumerate(app.owners):
        if not owner.startswith(mine):
            continue
        known = owner.removeprefix(mine)
        if not (known.isascii() and known.isdigit() and len(known) <= MOST_ID_DIGITS):
            text = f"{known!r} is no Discord id, so nobody is this owner"
            hint = "switch on Developer Mode in Discord, then right-click yourself"
            yield Complaint(
                ("owners", index), text, f"{hint}: Copy User ID", is_warning=True
            )


# Source: Discord, "Create Message": 2,000 characters, else error 50035; "Rate Limits"
# are told with each answer, 5 messages in 5 seconds are usual and edits count;
# "Uploading files": 10 MiB each, 10 of them.
PLATFORM = Platform(
    package="connectors.chat.discord",
    config=DiscordConfig,
    check=check,
    only_calls=always,
    name="Discord",
    extra="discord",
    limits=PlatformLimits(
        measure=Measure(
            {**dict.fromkeys("\\*_~`|[]@", 2), "<": 3},
            {"@": 2, "<": 2},
            is_utf16=True,
            table_row=TABLE_ROW,
        ),
        text=2_000,
        part=1_900,
        caption=2_000,
        typing_for=10.0,
        upload_bytes=10 * MIB,
        image_bytes=10 * MIB,
    ),
    dialect="Discord",
    reply_style=ReplyStyle(
        "You write on Discord. Markdown is shown: bold, italics, code blocks with their"
        " language, lists, quotes, headings up to three; tables are not. A message has"
        " at most 2,000 characters, so be brief. Put links in < > to keep them small.",
        MEDIA_MARKS,
    ),
    is_public=True,
)
