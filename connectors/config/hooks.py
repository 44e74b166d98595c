"""Settings of the operator's own code beside the way of a message: hooks and webhooks.

Only shapes, bounds and defaults; `app.py` puts them together.
"""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from actors.config.values import Count, Name
from actors.hooks.chain import Event
from connectors.config.mcp import VariableName
from runtime.config.loader import CommandText
from runtime.secret import OpenText, Secret


class HookConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A hook: a program (`command`), or Python that is installed (`python`)."""

    events: Annotated[tuple[Event, ...], Meta(min_length=1)]
    """What it is asked about, or told of."""

    command: tuple[CommandText, ...] = ()
    """Program to start, and what follows its name; no shell reads it. It speaks JSON
    lines over standard input and output. A file that it names is looked for beside the
    settings, and may be read."""

    python: str = ""
    """Name of an entry point of an installed package, in the group `callboard.hooks`.
    It runs in this process, and may do whatever this process may."""

    order: Annotated[int, Meta(ge=-1_000, le=1_000)] = 0
    """Which is asked first: the lowest; of equal ones, by name."""

    connectors: tuple[str, ...] = ()
    """Only words from and to these connectors; empty: all."""

    agents: tuple[str, ...] = ()
    """Only what these agents say; empty: all of them. A message that came in is no
    agent's yet."""

    timeout: Annotated[float, Meta(gt=0, le=60)] = 5.0
    """Seconds it may take to answer."""

    on_failure: Literal["open", "closed"] = "open"
    """What becomes of words of which it says nothing in time, or nothing sensible: they
    pass as they are (`open`), or are held back (`closed`)."""

    max_calls: Annotated[int, Meta(ge=1, le=64)] = 8
    """Questions at once; up to a hundred times as many wait, the rest counts as
    failed. Three quarters may be about one person's messages."""

    folder: Path | None = None
    """Current folder of the program, which it may read; unset: one of its own in the
    agents' workspace, which it may write to."""

    readable: tuple[Path, ...] = ()
    """Files and folders it may read, beside what programs need anyway."""

    writable: tuple[Path, ...] = ()
    """Files and folders it may read and change."""

    network: Literal["none", "tcp"] = "none"
    """Whether the program may connect to other machines."""

    env: dict[VariableName, OpenText] = field(default_factory=dict[str, OpenText])
    """Environment variables for the program, beside the few that every program gets;
    secrets as `{ env = "NAME" }`."""

    memory_mb: Count = 1_024
    """Most memory of the program, in MB."""

    restart_first: Annotated[float, Meta(ge=0, le=3_600)] = 1.0
    """Seconds before it is started again; doubled for each further time in a row, up to
    a minute."""

    disabled: bool = False
    """Whether it is left out."""


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

    chat: Annotated[
        str,
        Meta(
            pattern="^[^/]+/.+$",
            description='a chat, as in "page/lobby"',
        ),
    ]
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
