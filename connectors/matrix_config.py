"""The settings of a Matrix homeserver and of the agents' accounts there.

Only shapes, bounds and defaults; `matrix_checks.py` says what must fit together.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from actors.access_config import AccessConfig
from actors.config import Count, Name, Seconds
from runtime.secret import Secret

Pace = Annotated[float, Meta(ge=0, le=600)]


class MatrixAccountConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The account of one agent: a token or a password, not both."""

    user: Annotated[str, Meta(min_length=4, max_length=255)]
    """The whole id: `@anna:example.org`."""

    access_token: Secret | None = None
    """Of a login made for this program alone."""

    password: Secret | None = None
    """With it the account logs in at each start, always as the same device."""


class MatrixConfig(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="matrix"
):
    """One homeserver, and which agents have accounts there."""

    homeserver: Annotated[str, Meta(min_length=1)]
    """Its address, as clients are given it."""

    accounts: Annotated[dict[Name, MatrixAccountConfig], Meta(min_length=1)]
    """By the agent's name."""

    invites: Literal["nobody", "owners", "listed", "anyone"] = "owners"
    """Whose invitations are accepted: nobody's, the `owners`', also those of
    `invite_from`, or everybody's. The others are declined, with the reason."""

    invite_from: tuple[str, ...] = ()
    """With `listed`: ids of people (`@zoe:example.org`), or `*:example.org`."""

    access: AccessConfig | None = None
    """Who may write; unset: its owners alone."""

    status: Annotated[str, Meta(max_length=250)] = ""
    """What people see beside the accounts' names; empty: nothing is said."""

    retry_failures: bool = True
    """Whether a turn that failed is begun again after a while, by `[retries]`."""

    poll_timeout: Annotated[float, Meta(gt=0, le=120)] = 30.0
    """Seconds the homeserver may hold a request for news."""

    request_timeout: Seconds = 30.0
    """Seconds any other request may take in all."""

    backfill: Annotated[int, Meta(ge=0, le=10_000)] = 500
    """Most messages of one room that are fetched after a gap."""

    max_media_bytes: Count = 10_485_760
    """Largest file that is fetched with a message, in bytes; all files of one message
    have at most 40 MiB together."""

    pace: Pace = 0.0
    """Least seconds between two messages in one room."""

    draft_pace: Pace = 5.0
    """Least seconds between two edits of one message while it is being written."""
