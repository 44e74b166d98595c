"""What WhatsApp is to the rest of the program: settings, checks, limits."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct

from actors.config.values import Count, Name
from actors.rules.prompt.texts import MEDIA_MARKS, ReplyStyle
from actors.rules.text.measure import TABLE_ROW, Measure
from connectors.chat.platforms import MB, Platform, PlatformLimits
from connectors.config.app import AppConfig, ChatConfig
from connectors.config.checks import Way, check_address, unknown
from runtime.config.loader import Complaint, GivenSecret
from runtime.secret import Secret


class WhatsAppAccountConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The number of one agent."""

    phone_number_id: Annotated[str, Meta(min_length=1, max_length=32)]
    """Meta's id of the number, all digits; not the number itself."""

    access_token: GivenSecret
    """Of a system user, with `whatsapp_business_messaging`."""


class TemplateConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A message template that Meta has approved for the numbers of the app."""

    name: Annotated[str, Meta(pattern="^[a-z0-9_]{1,512}$")]
    """As in WhatsApp Manager. Its body has one placeholder, {{1}}, for the words."""

    language: Annotated[str, Meta(pattern="^[a-z]{2,3}(_[A-Z]{2})?$")] = "en_US"
    """The code of its language, as in WhatsApp Manager: `en`, `en_US`, `pt_BR`."""

    max_chars: Annotated[int, Meta(ge=20, le=1_024)] = 800
    """Longest words that go into it; Meta takes 1,024 characters with its own."""


class WhatsAppConfig(ChatConfig, frozen=True, kw_only=True, tag="whatsapp"):
    """One app of Meta's, and which agents have numbers there."""

    app_secret: Secret
    """The app's; what comes in is signed with it."""

    verify_token: Secret
    """Made up by you; Meta shows it once, when the webhook's address is set."""

    accounts: Annotated[dict[Name, WhatsAppAccountConfig], Meta(min_length=1)]
    """By the agent's name."""

    graph_url: Annotated[str, Meta(min_length=1)] = "https://graph.facebook.com/v24.0"
    """Address of the Graph API, with its version."""

    outside_window: Literal["keep", "refuse"] = "keep"
    """What becomes of an answer to somebody who has not written for 24 hours, which
    WhatsApp does not accept: it is kept for a day and sent if they write again, or it
    fails at once and waits for `callboard queue retry`."""

    template: TemplateConfig | None = None
    """The template in which such people get the answer instead. If the answer is too
    long for it, they get its beginning, and `outside_window` says what becomes of the
    whole. Unset: they get nothing."""

    mark_read: bool = True
    """Whether people see that their messages were read (two blue ticks)."""

    on_unknown: Literal["resend", "hold"] = "resend"
    """What is done about an answer that WhatsApp has not confirmed, though it may have
    sent it: send it again, or hold it until `callboard queue retry` or `drop`."""

    max_media_bytes: Count = 16_777_216
    max_body_bytes: Count = 3_145_728
    """Longest webhook that is read, in bytes; Meta sends up to 3 MiB."""

    per_minute: Annotated[int, Meta(ge=0, le=600)] = 10
    """Most messages to one person in a minute; 0: no limit. WhatsApp takes one in 6
    seconds, and up to 45 at once that it makes up for afterwards."""


# Source: Meta, "App secret": 32 signs of a hexadecimal number.
APP_SECRET = re.compile(r"[0-9a-fA-F]{32}")

EXAMPLE = "https://graph.facebook.com/v24.0"


def check(mine: Mapping[str, WhatsAppConfig], app: AppConfig) -> Iterator[Complaint]:
    """Check every connector of this kind."""
    for name, connector in mine.items():
        way: Way = ("connectors", name)
        yield from check_way_in(way, app)
        yield from check_app(way, connector)
        yield from check_accounts(way, connector, app)


def check_way_in(way: Way, app: AppConfig) -> Iterator[Complaint]:
    """Refuse numbers that Meta could never call."""
    if not app.has_http:
        text = "WhatsApp calls us by the HTTP server, and there is none"
        yield Complaint(way, text, 'add [connectors.http] with kind = "http"')


def check_app(way: Way, config: WhatsAppConfig) -> Iterator[Complaint]:
    """Refuse a secret that is none: anybody could sign with it."""
    secret = config.app_secret
    if secret.is_set and not APP_SECRET.fullmatch(secret.reveal().strip()):
        text = "is no app secret: it has 32 signs, of 0 to 9 and a to f"
        hint = "copy it from App settings > Basic; it is no access token"
        yield Complaint((*way, "app_secret"), text, hint)
    place = (*way, "graph_url")
    yield from check_address(place, config.graph_url, has_key=True, example=EXAMPLE)


def check_accounts(
    way: Way, config: WhatsAppConfig, app: AppConfig
) -> Iterator[Complaint]:
    """Check whose numbers there are."""
    taken: dict[str, str] = {}
    for agent, account in config.accounts.items():
        here = (*way, "accounts", agent)
        yield from unknown(here, "agent", agent, app.agents)
        number = account.phone_number_id
        if not (number.isascii() and number.isdigit()):
            text = f"{number!r} is no id of a number: it has digits only"
            hint = "copy the phone number ID from WhatsApp > API Setup"
            yield Complaint((*here, "phone_number_id"), text, hint)
        other = taken.setdefault(number, agent)
        if other != agent:
            text = f"{number} is the number of {other!r} already"
            hint = "give each agent a number of its own"
            yield Complaint((*here, "phone_number_id"), text, hint)


# Source: WhatsApp, Cloud API "Text messages": 4,096 characters. "Pair rate limits": one
# message in 6 seconds to one person (error 131056), but up to 45 at once, after which
# it wants as long a rest as they would have taken. "Media": images 5 MB, sound and
# video 16 MB, documents 100 MB; captions of 1,024, none with sound.
PLATFORM = Platform(
    package="connectors.chat.whatsapp",
    config=WhatsAppConfig,
    retired={
        "media_timeout": "the files of one webhook have 8 seconds: Meta waits for them"
    },
    check=check,
    name="WhatsApp",
    limits=PlatformLimits(
        measure=Measure(is_utf16=True, table_row=TABLE_ROW),
        text=4_096,
        part=3_900,
        caption=1_024,
        typing_for=25.0,
        upload_bytes=100 * MB,
        image_bytes=5 * MB,
        clip_bytes=16 * MB,
        uncaptioned=("audio", "voice"),
    ),
    dialect="WhatsApp",
    reply_style=ReplyStyle(
        "You write on WhatsApp. Bold, italics and code are shown; headings, tables and"
        " named links are not: write addresses out. People read it on a phone: be"
        " brief.",
        MEDIA_MARKS,
    ),
    is_public=True,
)
