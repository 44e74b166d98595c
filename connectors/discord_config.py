"""The settings of Discord and of the agents' bots there.

Only shapes, bounds and defaults; `discord_checks.py` says what must fit together.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from actors.access_config import AccessConfig
from actors.config import Count, Name, Seconds
from runtime.secret import Secret

Pace = Annotated[float, Meta(ge=0, le=600)]


class DiscordAccountConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The bot of one agent."""

    token: Secret | None = None
    """Of the bot, from the developer portal."""


class DiscordConfig(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="discord"
):
    """Which agents have bots on Discord."""

    accounts: Annotated[dict[Name, DiscordAccountConfig], Meta(min_length=1)]
    """By the agent's name."""

    access: AccessConfig | None = None
    """Who may write; unset: its owners alone."""

    message_content: bool = True
    """Whether the bots ask for the Message Content Intent: without it they read only
    what mentions them, what replies to them, and direct messages."""

    slash_commands: bool = True
    """Whether the runtime's own commands are made known to Discord, which then offers
    them to whoever writes a slash."""

    status: Annotated[str, Meta(max_length=128)] = ""
    """What people see beneath the bots' names; empty: nothing."""

    retry_failures: bool = True
    """Whether a turn that failed is begun again after a while, by `[retries]`."""

    request_timeout: Seconds = 60.0
    """Seconds a request may take in all, with what Discord asks us to wait."""

    silence_timeout: Seconds = 60.0
    """Seconds without a word from the gateway after which a connection is taken for
    dead. It says something every 41."""

    backfill: Annotated[int, Meta(ge=0, le=10_000)] = 500
    """Most messages of one channel that are fetched after a gap."""

    max_media_bytes: Count = 10_485_760
    """Largest file that is fetched with a message, in bytes; all files of one message
    have at most 40 MiB together."""

    pace: Pace = 1.0
    """Least seconds between two messages in one channel."""

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
