"""What the ElizaOS channel is to the rest of the program: settings and checks."""

import importlib.util
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from actors.config.access import AccessConfig
from actors.config.values import Count, Name, Seconds
from actors.rules.prompt.texts import MEDIA_MARKS, ReplyStyle
from connectors.chat.platforms import Platform
from connectors.config.app import AppConfig, ServerConfig
from connectors.config.checks import Way, check_open_door, check_origins, check_proxies
from runtime.config.loader import Complaint, WrittenPath
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


class WebConfig(ServerConfig, frozen=True, kw_only=True, tag="web"):
    """The server for clients that speak the ElizaOS API."""

    host: str = "127.0.0.1"
    """Address to listen on; another than this machine's own needs a key."""

    port: Annotated[int, Meta(ge=0, le=65_535)] = 3000

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

    uploads: Annotated[WrittenPath, Meta(min_length=1)] = "var/web_uploads"
    """The folder of uploaded files."""

    max_uploads_bytes: Count = 1_073_741_824
    """All uploaded files together, in bytes, of one channel three quarters at most;
    beyond, uploads are refused."""

    max_channels: Annotated[int, Meta(ge=1, le=100_000)] = 10_000
    """Channels kept; beyond, no new one is made."""

    max_jobs: Annotated[int, Meta(ge=1, le=10_000)] = 1_000
    """Jobs and sessions kept, of each so many."""

    keep_messages: Annotated[int, Meta(ge=1, le=1_000_000)] = 10_000
    """Messages kept of one channel; older ones are forgotten."""

    keep_days: Annotated[float, Meta(gt=0, le=36_500)] = 365.0
    """Days a message is kept."""


EXTRA = "socketio"
"""What the extra brings along."""

ENTITY = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def check(mine: Mapping[str, WebConfig], _app: AppConfig) -> Iterator[Complaint]:
    """Check every connector of this kind."""
    for name, connector in mine.items():
        way: Way = ("connectors", name)
        if importlib.util.find_spec(EXTRA) is None:
            text = "the extra 'web' is not installed"
            yield Complaint(way, text, "pip install 'callboard[web]'")
        has_key = connector.api_key is not None or bool(connector.keys)
        yield from check_open_door(way, connector.host, has_key=has_key)
        yield from check_proxies(way, connector.trusted_proxies)
        yield from check_origins(way, connector.origins, has_key=has_key)
        yield from check_keys(way, connector)


def check_keys(way: Way, config: WebConfig) -> Iterator[Complaint]:
    """Check that each key is one of its own, and can do something."""
    known: list[tuple[str, WebKeyConfig]] = []
    for name, each in config.keys.items():
        here = (*way, "keys", name)
        if each.key == config.api_key:
            yield Complaint(here, "this key is the api_key", "make another one")
        for other, earlier in known:
            if earlier.key == each.key:
                text = f"this key is that of {other!r}, too"
                yield Complaint(here, text, "make one for each")
        known.append((name, each))
        if not each.scopes:
            text = "this key may do nothing"
            yield Complaint((*here, "scopes"), text, 'for example ["read"]')
        if "operate" in each.scopes and (each.entity or "*" not in each.channels):
            text = "the log and the settings tell of everybody"
            hint = 'take "operate" out, or leave entity and channels as they are'
            yield Complaint((*here, "scopes"), text, hint)
        if each.entity and not ENTITY.fullmatch(each.entity):
            text = f"{each.entity!r} is no UUID"
            hint = "write the id by which clients know this person"
            yield Complaint((*here, "entity"), text, hint)


PLATFORM = Platform(
    package="connectors.web.eliza",
    config=WebConfig,
    retired={"max_participants": "a channel has 1,000 participants at most"},
    check=check,
    extra="web",
    reply_style=ReplyStyle(
        "You write on a web page. Markdown is shown, with tables and code.", MEDIA_MARKS
    ),
)
