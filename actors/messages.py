"""What travels between actors, and across the ports.

All Structs are frozen: a message may be held by several actors at once. The
reply address of an inbound message is one of its fields and nothing later may
change it. Terms: `STYLE` glossary (correlation id, session, turn, round).
"""

from __future__ import annotations

from typing import Literal

import msgspec

Role = Literal["user", "assistant", "tool"]
Occasion = Literal[
    "",
    "said",
    "reminder",
    "task",
    "cron",
    "heartbeat",
    "autonomous",
    "plan",
    "webhook",
    "told",
]
"""Of what the runtime wrote itself: what was due; `said`: a reminder, as it was set;
`plan`: what an agent has decided to do by itself; `webhook`: what came in by one;
`told`: what it has said here in a lane."""

ALONE: frozenset[Occasion] = frozenset({"cron", "heartbeat", "autonomous", "plan"})
"""What comes again and again is told nothing of the conversation: cheap (F294)."""

BY_ITSELF: frozenset[Occasion] = frozenset({"autonomous", "plan"})
"""An agent decides whether to do anything; it does it (F300)."""


class Address(msgspec.Struct, frozen=True):
    """Where an answer goes; fixed when the message comes in."""

    connector: str
    """Name of the connector account, as in the settings (`terminal`, `http`)."""

    chat: str
    """The platform's id of the chat, room or conversation."""

    thread: str = ""
    """The platform's id of the thread inside the chat; empty outside threads."""


class Attachment(msgspec.Struct, frozen=True):
    """A file, picture or voice note that came with a message."""

    kind: Literal["image", "audio", "document"]
    name: str
    media_type: str
    """MIME type as the platform said it; not trusted."""

    url: str = ""
    content: bytes = b""


class SentFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that goes out with an answer; `file_ports.Blobs` has its bytes."""

    digest: str
    """SHA-256 of its bytes, 64 hexadecimal digits: where they are found."""

    name: str
    """For people; no folder, nothing invisible."""

    media_type: str
    """Found in the bytes."""

    size: int
    """Bytes."""

    kind: Literal["image", "audio", "voice", "video", "document"] = "document"
    """How it is shown, where that can be."""

    caption: str = ""
    """What the agent says of it."""


class Image(msgspec.Struct, frozen=True):
    """A picture for a model that can see."""

    media_type: str
    """`image/png`, `image/jpeg`, `image/webp` or `image/gif`: found in the bytes."""

    content: bytes


class Media(msgspec.Struct, frozen=True):
    """What the attachments of a message say (F313)."""

    text: str = ""
    """For the model, now: documents, transcripts, and what could not be read."""

    images: tuple[Image, ...] = ()
    kept: str = ""
    """For the conversation's history: the same, documents cut short."""


class ToolCall(msgspec.Struct, frozen=True):
    """One tool the model asks for."""

    id: str
    """Made up by the model; the tool's answer must carry it back."""

    name: str
    arguments: bytes
    """JSON text, not yet decoded: only the tool knows its own schema."""


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a transcript, as a model sees it."""

    role: Role
    text: str
    name: str = ""
    """Who spoke: a person's name or an agent's; empty when it does not matter."""

    tool_calls: tuple[ToolCall, ...] = ()
    """Only on `assistant` lines: the tools it asked for."""

    tool_call_id: str = ""
    """Only on `tool` lines: the call this line answers."""

    images: tuple[Image, ...] = ()
    """Left out for models that see nothing. Not on `assistant` lines."""


class Chain(msgspec.Struct, frozen=True):
    """Who asked whom, from the person's message down to this one."""

    agents: tuple[str, ...] = ()
    """Agents in order of asking, the one asked last; empty for a person's message."""

    deadline: float = 0.0
    """Unix seconds after which nobody may act on it; 0 means none."""

    left: int = 0
    """How many tasks may still be handed on below this one, all in all."""

    turns: int = 0
    """Which answer of agents to each other in the open this asks for, from 1; 0: it is
    a task, or a person's message."""


class Quoted(msgspec.Struct, frozen=True, omit_defaults=True):
    """The message that another one replies to, as its platform shows it."""

    text: str = ""
    """Cut by the edge if it is long; nobody's order to anybody."""

    sender_name: str = ""
    agent: str = ""
    """Name of the agent that said it; empty: somebody else did."""


class Inbound(msgspec.Struct, frozen=True, kw_only=True):
    """One message as it came in, the same shape from every platform."""

    id: str
    """Unique over all nodes; its row in the inbox."""

    platform: str
    """Kind of connector: `terminal`, `http`, `discord`, …"""

    platform_id: str
    """The platform's own id of the message; the dedup key with the connector."""

    address: Address
    sender_id: str
    sender_name: str
    text: str
    received_at: float
    """Unix seconds."""

    is_direct: bool = True
    """True in a one-to-one chat with an agent, False in a group."""

    agent: str = ""
    """Name of the agent the edge addresses (`model` over HTTP); empty: routes say."""

    wants_drafts: bool = True
    """Whether anybody looks at the answer while it is being written."""

    interruption_scope: str = ""
    """Messages of one sender interrupt each other only inside one scope."""

    reply_to: str = ""
    """The platform's id of the message this one replies to; empty if none."""

    quoted: Quoted | None = None
    """What that message says; None if the edge does not know, or there is none."""

    mentions: tuple[str, ...] = ()
    """Agents that the platform itself says are mentioned, by name."""

    present: tuple[str, ...] = ()
    """Agents that are in this chat, by name; empty: the edge does not know."""

    roles: tuple[str, ...] = ()
    """What the sender is on the platform, as it says (`admin`, …)."""

    is_bot: bool = False
    """Whether a program wrote it that is none of our agents."""

    attachments: tuple[Attachment, ...] = ()
    history: tuple[Line, ...] = ()
    """Earlier lines the edge brought along, oldest first (stateless HTTP clients)."""

    platform_fields: dict[str, str] = {}
    """The platform's specifics (guild, channel type), kept as they came."""

    chain: Chain = Chain()
    """Empty for people; who delegated, when an agent wrote this."""

    occasion: Occasion = ""
    """Why the runtime wrote this; empty: somebody did. No command, no yes, no no."""

    lane: str = ""
    """Names one of several turns that one occasion has beside each other, each in a
    conversation of its own; empty: in that of the chat."""

    correlation_id: str = ""
    """Id of the person's message that this goes back to; left empty, its own."""

    others: int = 0
    """How many further agents heard this: answers that its own must announce."""

    heard_by: int = 1
    """How many agents heard this, each of which may cause an equal part of what one
    message may."""

    copy_of: int = 0
    """For a further agent's copy: its original's number in the inbox; else 0."""

    is_hooked: bool = False
    """Whether hooks were asked of it: what they said stands in its text."""

    changed_by: str = ""
    """The hook that gave it other words last: they decide about no tool call."""

    priority: int = 5
    """1 to 10, lower is more urgent: whose turn comes first when many wait (F284)."""

    tokens: int = 0
    """What its turn may take, read and written; 0: no limit of its own."""

    def __post_init__(self) -> None:
        """Take the message's own id for the correlation id unless one is given."""
        if not self.correlation_id:
            msgspec.structs.force_setattr(self, "correlation_id", self.id)


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one model call, as the provider counted them."""

    input_tokens: int = 0
    """All that was read, whether from the provider's cache or not."""

    output_tokens: int = 0
    cached_tokens: int = 0
    """How many of `input_tokens` came from the provider's cache."""

    def __add__(self, other: Usage) -> Usage:
        """Add up two calls."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
        )


class ToolSpec(msgspec.Struct, frozen=True):
    """What a model is told of a tool."""

    name: str
    description: str
    parameters: bytes
    """JSON schema of the arguments, an object."""

    is_repeatable: bool = False
    """Whether a call that was cut off may simply be made again. False for whatever
    changes the world: the model is then told that nobody knows."""

    is_own_words: bool = False
    """Whether all it says are this program's own words. Anybody else's are marked as
    such before the model sees them."""

    effect: Literal["read", "write", "run"] = "run"
    """The worst that a call can do: look something up, change something of the
    agent's own, or do anything whatever. Decides who must be asked before."""


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One question to a model."""

    model: str
    """The provider's name of the model."""

    agent: str
    """Which agent asks; for logs and for the scripted model."""

    correlation_id: str
    system: str
    lines: tuple[Line, ...]
    tools: tuple[ToolSpec, ...] = ()
    """Empty: the model must answer in words."""

    temperature: float | None = None
    max_tokens: int | None = None
    """Most tokens of the answer; None leaves it to the provider."""

    conversation: str = ""
    """The session's key; for a model that works in a folder of the conversation."""

    resume: str = ""
    """What an earlier answer in this conversation gave as its `resume`."""

    notes: tuple[str, ...] = ()
    """What of `system` belongs to this message alone: it stands at the end there, and
    is told anew where the rest is known."""


class ModelAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer; one that was cut off is an error instead."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    stop_reason: Literal["end", "tools", "length", "refused"] = "end"
    request_id: str = ""
    """The provider's own id of the call, for its support; empty if it gave none."""

    resume: str = ""
    """By which the next request may go on where this one ended, at a model that keeps
    the conversation itself; empty for all others."""


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """On whose behalf a tool runs."""

    agent: str
    correlation_id: str
    address: Address
    sender_id: str
    skill: str = ""  # asked for by a person's command (F103); mostly none
    is_direct: bool = False
    """Whether nobody but the sender reads the answer."""

    accounts: tuple[str, ...] = ()
    """The sender's, the first names the person; none: `connector/sender_id`."""

    member: str = ""
    """In a group where each has a conversation of their own: whose this one is."""


class ToolResult(msgspec.Struct, frozen=True):
    """What a tool gives back; untrusted text."""

    text: str
    is_error: bool = False
    images: tuple[Image, ...] = ()
    files: tuple[SentFile, ...] = ()
    """What goes out with the answer; only of tools of this program."""
