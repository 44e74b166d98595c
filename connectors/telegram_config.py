"""The settings of agents' bots on Telegram.

Only shapes, bounds and defaults; `telegram_checks.py` says what must fit together.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from actors.access_config import AccessConfig
from actors.config import Name, Seconds
from runtime.secret import Secret

Pace = Annotated[float, Meta(ge=0, le=600)]


class TelegramAccountConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The bot of one agent."""

    token: Secret
    """As @BotFather gave it: `123456:ABC…`."""

    webhook_secret: Secret | None = None
    """With `mode = "webhook"`: what Telegram is to say with each message."""


class TelegramConfig(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="telegram"
):
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

    access: AccessConfig | None = None
    """Who may write; unset: its owners alone."""

    retry_failures: bool = True
    """Whether a turn that failed is begun again after a while, by `[retries]`."""

    on_unknown: Literal["resend", "hold"] = "resend"
    """What is done about an answer that may stand there already, because the connection
    broke: say it again, or keep it back until `callboard queue` decides."""

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
