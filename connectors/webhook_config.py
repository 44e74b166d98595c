"""What people can set about webhooks, in and out."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from actors.config import Count, Name, Seconds
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

    max_open: Count = 100
    """Tasks of it that may wait for their end; further ones are told to come later."""


class WebhooksConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Webhooks: other programs start tasks, and are told what happens here."""

    replay_window: Seconds = 300.0
    """Seconds by which a sender's clock may differ; beyond that nothing is taken."""

    incoming: dict[Name, WebhookInConfig] = field(
        default_factory=dict[str, WebhookInConfig], name="in"
    )
