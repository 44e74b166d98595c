"""What people can set about webhooks, in and out."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from actors.config.values import Count, Name
from runtime.secret import Secret

Text = Annotated[str, Meta(min_length=1, max_length=20_000)]


class WebhookInConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A webhook that starts tasks: `POST /webhooks/<name>` of each HTTP connector."""

    secret: Secret
    """What the sender signs with: `whsec_` and base64, or any text of 16 bytes."""

    previous_secret: Secret | None = None
    """What it signed with before; taken, too, while the secret is being changed."""

    scheme: Literal["standard", "github"] = "standard"
    """How it signs: as Standard Webhooks have it, or as GitHub has."""

    agents: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=16)]
    """Who is told, each with a task of its own."""

    chat: Annotated[str, Meta(pattern="^[^/]+/.+$")]
    """Where they answer, as `connector/chat`."""

    task: Text
    """What they are to do; what came with the webhook stands behind it, as data."""

    events: tuple[str, ...] = ()
    """Only these start a task, `*` stands for anything; none: all but GitHub's ping."""

    fields: tuple[str, ...] = ()
    """Which fields of the body the agents see, as `repository.full_name`; none: all."""

    max_chars: Annotated[int, Meta(ge=100, le=100_000)] = 8_000
    """Characters of the body that agents see; the rest is cut, and they are told."""

    own_conversation: bool = False
    """Whether its tasks have a conversation of their own, which remembers only them;
    else they belong to the chat's, where people can ask about them."""

    per_minute: Count = 60
    """Deliveries taken in a minute; more are told to come again later."""

    # Chosen: as many as may wait in one conversation (`limits.max_waiting`), so that
    # people find room beside them.
    max_open: Count = 10
    """Tasks of it that may wait for their end; further ones are told to come later."""


class WebhookOutConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A webhook that is sent: another program is told what happens here."""

    url: Annotated[str, Meta(min_length=1, max_length=8_000)]
    """Where it is sent."""

    secret: Secret
    """What it is signed with, as Standard Webhooks have it."""

    events: Annotated[tuple[str, ...], Meta(min_length=1)] = ("*",)
    """What it tells of; `*` stands for anything."""

    agents: Annotated[tuple[str, ...], Meta(min_length=1)] = ("*",)
    """Of which agents; `*` stands for anything."""

    texts: bool = False
    """Whether it holds what people and agents wrote, without secrets."""

    private: bool = False
    """Whether its address may be on this machine or in its own network."""

    attempts: Annotated[int, Meta(ge=1, le=100)] = 10
    """Tries until an event is given up."""

    first_wait: Annotated[float, Meta(ge=1, le=86_400)] = 10.0
    """Seconds after the first failure; each further wait is four times as long."""

    longest_wait: Annotated[float, Meta(ge=1, le=86_400)] = 21_600.0
    """Most seconds between two tries."""

    keep_hours: Annotated[float, Meta(gt=0, le=8_760)] = 72.0
    """Hours after which an event is given up that could not be sent."""

    timeout: Annotated[float, Meta(gt=0, le=60)] = 10.0
    """Seconds that the receiver may take to answer."""

    max_waiting: Annotated[int, Meta(ge=1, le=100_000)] = 10_000
    """Events that may wait; of more, the oldest are given up. As many are kept of those
    given up."""


class WebhooksConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Webhooks: other programs start tasks, and are told what happens here."""

    incoming: dict[Name, WebhookInConfig] = field(
        default_factory=dict[str, WebhookInConfig], name="in"
    )

    out: dict[Name, WebhookOutConfig] = field(
        default_factory=dict[str, WebhookOutConfig]
    )
