"""The settings of numbers on WhatsApp's Cloud API.

Only shapes, bounds and defaults; `whatsapp_checks.py` says what must fit together.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from actors.access_config import AccessConfig
from actors.config import Count, Name, Seconds
from runtime.secret import Secret

Pace = Annotated[float, Meta(ge=0, le=600)]


class WhatsAppAccountConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The number of one agent."""

    phone_number_id: Annotated[str, Meta(min_length=1, max_length=32)]
    """Meta's id of the number, all digits; not the number itself."""

    access_token: Secret
    """Of a system user, with `whatsapp_business_messaging`."""


class WhatsAppConfig(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="whatsapp"
):
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
    """What becomes of words to somebody who has not written for 24 hours, which
    WhatsApp does not take: kept for a day, and said should they write again; or given
    up at once, for `callboard queue retry`."""

    mark_read: bool = True
    """Whether people see that their messages were read (two blue ticks)."""

    access: AccessConfig | None = None
    """Who may write; unset: its owners alone."""

    retry_failures: bool = True
    """Whether a turn that failed is begun again after a while, by `[retries]`."""

    on_unknown: Literal["resend", "hold"] = "resend"
    """What is done about an answer that WhatsApp may have taken without our knowing:
    say it again, or keep it back until `callboard queue retry` or `drop` decides."""

    request_timeout: Seconds = 30.0
    """Seconds a request may take in all."""

    media_timeout: Annotated[float, Meta(gt=0, le=60)] = 8.0
    """Seconds in which all files of one webhook must have come; what comes later is
    left out, and the message says so. Meta waits for our answer meanwhile."""

    max_media_bytes: Count = 16_777_216
    """Largest file that is fetched with a message, in bytes; all files of one message
    have at most 40 MiB together."""

    max_body_bytes: Count = 3_145_728
    """Longest webhook that is read, in bytes; Meta sends up to 3 MiB."""

    pace: Pace = 6.0
    """Least seconds between two messages to one person."""
