"""The settings of the web channel: the ElizaOS messaging API.

Only shapes, bounds and defaults; `web_checks.py` says what must fit together.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from actors.access_config import AccessConfig
from actors.config import Count, Name, Seconds
from runtime.secret import Secret

Scope = Literal["read", "write", "manage", "act", "operate"]
"""What a key may do: see channels, what was said, what of it is remembered and what it
took; speak, ask, upload; make, change and delete servers, channels and memories; speak
as an agent or for somebody else; see the log and the settings (masked), make and change
agents, let them rest, stop the program."""


class WebKeyConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """One key, and what whoever has it may do."""

    key: Secret
    """What clients send as `X-API-KEY` or bearer token."""

    scopes: tuple[Scope, ...] = ("read", "write")
    """What it may do."""

    entity: str = ""
    """The id (a UUID) of whom it stands for: it speaks as nobody else, and sees the
    channels that they are in. Empty: any."""

    channels: tuple[str, ...] = ("*",)
    """Which channels it may see: ids, or patterns."""


class WebConfig(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="web"
):
    """The server for clients that speak the ElizaOS API."""

    host: str = "127.0.0.1"
    """Address to listen on; another than this machine's own needs a key."""

    port: Annotated[int, Meta(ge=0, le=65_535)] = 3000
    """TCP port; 0 takes any free one."""

    api_key: Secret | None = None
    """A key that may do everything."""

    keys: dict[Name, WebKeyConfig] = field(default_factory=dict[str, WebKeyConfig])
    """Further keys, each with its scopes. Without any key everybody on this machine may
    do everything."""

    origins: tuple[str, ...] = ()
    """Web pages of other servers that may ask: `https://chat.example.org`; `*`: all."""

    access: AccessConfig | None = None
    """Whose messages are taken in, by their author's id; unset: everybody's whom a key
    lets in. What a client says of its author is believed, unless its key says it."""

    retry_failures: bool = False
    """Whether a turn that failed is begun again after a while, by `[retries]`."""

    max_body_bytes: Count = 2_097_152
    """Longest JSON body, in bytes."""

    body_timeout: Seconds = 15.0
    """Seconds a client may take to send its body."""

    max_connections: Count = 2048
    """Connections held at once, sockets included."""

    answer_timeout: Seconds = 300.0
    """Seconds a request waits at most for an agent's answer."""

    rate_limit: Annotated[int, Meta(ge=0)] = 1000
    """Requests of one client address in 15 minutes; 0: any."""

    upload_limit: Annotated[int, Meta(ge=0)] = 50
    """Of these, uploads; 0: any."""

    max_upload_bytes: Annotated[int, Meta(ge=0, le=1_073_741_824)] = 52_428_800
    """Largest uploaded file, in bytes; 0: no uploads."""

    uploads: Annotated[str, Meta(min_length=1)] = "var/web_uploads"
    """Where uploaded files are kept; relative to the current directory."""

    max_uploads_bytes: Count = 1_073_741_824
    """All uploaded files together, in bytes; beyond, uploads are refused."""

    max_channels: Annotated[int, Meta(ge=1, le=100_000)] = 10_000
    """Channels kept; beyond, no new one is made."""

    max_participants: Annotated[int, Meta(ge=1, le=10_000)] = 1_000
    """Who may be in one channel, at most."""

    max_jobs: Annotated[int, Meta(ge=1, le=10_000)] = 1_000
    """Jobs and sessions kept, of each so many."""

    keep_messages: Annotated[int, Meta(ge=1, le=1_000_000)] = 10_000
    """Messages kept of one channel; older ones are forgotten."""

    keep_days: Annotated[float, Meta(gt=0, le=36_500)] = 365.0
    """Days a message is kept."""
