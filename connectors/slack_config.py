"""The settings of a Slack workspace and of the agents' apps there.

Only shapes, bounds and defaults; `slack_checks.py` says what must fit together.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from actors.access_config import AccessConfig
from actors.config import Count, Name, Seconds
from runtime.secret import Secret

Pace = Annotated[float, Meta(ge=0, le=600)]


class SlackAccountConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The app of one agent. It hears by `app_token`, or by `signing_secret`."""

    bot_token: Secret
    """Of the app's installation, `xoxb-…`: what it says, it says by this."""

    app_token: Secret | None = None
    """With it the app opens a connection to Slack (Socket Mode), `xapp-…`."""

    signing_secret: Secret | None = None
    """With it Slack calls the HTTP server (Events API), and each call is checked."""


class SlackConfig(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="slack"
):
    """One workspace, and which agents have apps there."""

    accounts: Annotated[dict[Name, SlackAccountConfig], Meta(min_length=1)]
    """By the agent's name."""

    base_url: Annotated[str, Meta(min_length=1)] = "https://slack.com/api/"
    """Where the Web API is."""

    access: AccessConfig | None = None
    """Who may write; unset: its owners alone."""

    slash_command: Annotated[str, Meta(pattern=r"^/[a-z0-9_-]{1,31}$")] = "/callboard"
    """The slash command whose text is a command itself: `/callboard help` is `/help`.
    Any other counts as it is written."""

    start_threads: bool = False
    """Whether what is written in a channel is answered in a thread of its own, which
    is a conversation by itself; false: in the channel."""

    retry_failures: bool = True
    """Whether a turn that failed is begun again after a while, by `[retries]`."""

    request_timeout: Seconds = 30.0
    """Seconds a request may take in all."""

    ping_every: Annotated[float, Meta(ge=1, le=300)] = 15.0
    """Seconds between two looks whether the connection is alive."""

    backfill: Annotated[int, Meta(ge=0, le=10_000)] = 500
    """Most messages of one channel that are fetched after a gap; 0: none."""

    max_media_bytes: Count = 10_485_760
    """Largest file that is fetched with a message, in bytes; all files of one message
    have at most 40 MiB together."""

    pace: Pace = 1.0
    """Least seconds between two messages in one channel, its threads included."""

    draft_pace: Pace = 1.5
    """Least seconds between two edits of one message while it is being written."""
