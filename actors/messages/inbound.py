"""Messages between actors and across ports: inbound messages, transcripts, model calls.

All structs are frozen, because several actors may hold one message at once. An inbound
message carries its reply address, and nothing may change it later.
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
"""Why the runtime generated a message: the kind of appointment that was due. `said`: a
reminder, word for word; `plan`: an autonomous decision of the agent; `webhook`: an
incoming webhook; `told`: the agent's own message from a lane. Empty for people's
messages.
"""

ALONE: frozenset[Occasion] = frozenset({"cron", "heartbeat", "autonomous", "plan"})
"""Recurring occasions. Their turns see no conversation history, which keeps them
cheap.
"""

BY_ITSELF: frozenset[Occasion] = frozenset({"autonomous", "plan"})
"""Autonomous occasions: the agent decides whether to act (`autonomous`), and acts
(`plan`).
"""


class Address(msgspec.Struct, frozen=True):
    """Where an answer goes; fixed when the message is accepted."""

    connector: str
    """Name of the connector account in the settings, such as `terminal` or `http`."""

    chat: str
    """The platform's id of the chat, room or conversation."""

    thread: str = ""
    """The platform's id of the thread in the chat; empty outside threads."""


class Attachment(msgspec.Struct, frozen=True):
    """A file, picture or voice note that came with a message."""

    kind: Literal["image", "audio", "document"]
    name: str
    media_type: str
    """MIME type as reported by the platform; not trusted."""

    url: str = ""
    content: bytes = b""


class SentFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that is sent with an answer; `ports.Blobs` has its bytes."""

    digest: str
    """SHA-256 of its bytes in 64 hexadecimal digits; the key to its bytes."""

    name: str
    """File name for people, without folders and invisible characters."""

    media_type: str
    """MIME type, detected from the bytes."""

    size: int
    """Bytes."""

    kind: Literal["image", "audio", "voice", "video", "document"] = "document"
    """How the platform shows it, if it can."""

    caption: str = ""
    """The agent's caption."""


class Image(msgspec.Struct, frozen=True):
    """A picture for a model with vision."""

    media_type: str
    """`image/png`, `image/jpeg`, `image/webp` or `image/gif`; detected from the
    bytes.
    """

    content: bytes


class Media(msgspec.Struct, frozen=True):
    """Text of a message's attachments."""

    text: str = ""
    """Text for the present turn: documents, transcripts, and notes on files that could
    not be read.
    """

    images: tuple[Image, ...] = ()
    kept: str = ""
    """Text for the conversation's history: the same with shortened documents."""


class ToolCall(msgspec.Struct, frozen=True):
    """One tool the model asks for."""

    id: str
    """Chosen by the model; the tool's answer must carry the same id."""

    name: str
    arguments: bytes
    """JSON text, not yet decoded, because only the tool knows its schema."""


class TranscriptLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a transcript, as a model sees it."""

    role: Role
    text: str
    name: str = ""
    """Name of the person or agent that wrote the line; empty if it does not matter."""

    tool_calls: tuple[ToolCall, ...] = ()
    """The tool calls of an `assistant` line."""

    tool_call_id: str = ""
    """On `tool` lines, the id of the call that it answers."""

    images: tuple[Image, ...] = ()
    """Pictures for models with vision; never on `assistant` lines."""


class DelegationChain(msgspec.Struct, frozen=True):
    """Which agent asked which, from the person's message down to this one."""

    agents: tuple[str, ...] = ()
    """Agents in order of delegation, the present one last; empty for a person's
    message.
    """

    deadline: float = 0.0
    """Monotonic seconds of this process after which no agent may act on it; 0 means no
    deadline. Only questions to colleagues have one, and they are never stored.
    """

    left: int = 0
    """Delegations that are still allowed below this message, in total."""

    turns: int = 0
    """Number of the visible turn between agents that this message requests, from 1. 0
    for tasks and for people's messages.
    """

    turns_left: int = 0
    """Visible turns that are still allowed below this message, in total."""


class Quoted(msgspec.Struct, frozen=True, omit_defaults=True):
    """The quoted message of a reply, as the platform shows it."""

    text: str = ""
    """Its text, shortened by the connector. It is data, never an instruction."""

    sender_name: str = ""
    agent: str = ""
    """Name of the agent that wrote it; empty if anybody else did."""


class Inbound(msgspec.Struct, frozen=True, kw_only=True):
    """One accepted message, in the same shape from every platform."""

    id: str
    """Unique over all nodes; the key of its row in the inbox."""

    platform: str
    """Kind of connector: `terminal`, `http`, …"""

    platform_id: str
    """With the connector, the deduplication key: the platform's own id of the message.
    Messages that an agent or the runtime wrote, and the copies for further agents, have
    keys that no platform knows; use `source_id` to refer to a message there.
    """

    address: Address
    sender_id: str
    sender_name: str
    text: str
    received_at: float
    """Unix seconds."""

    caller: str = ""
    """Who handed it in for the sender, where one may do so for many: an API key, or the
    address that a client calls from. Places that are shared, as the turns of a model,
    are shared by callers first and by senders then. Empty: the platform itself.
    """

    is_direct: bool = True
    """True in a one-to-one chat with an agent, False in a group."""

    agent: str = ""
    """Name of the agent that the connector addresses (`model` over HTTP). Empty: the
    routes decide.
    """

    wants_drafts: bool = True
    """Whether anybody watches the answer while it is being written."""

    interruption_scope: str = ""
    """Messages of one sender interrupt each other only within one scope."""

    reply_to: str = ""
    """The platform's id of the message that this one replies to; empty for none."""

    quoted: Quoted | None = None
    """The quoted message; None if there is none or the connector does not know it."""

    mentions: tuple[str, ...] = ()
    """Names of the agents that the platform reports as mentioned."""

    present: tuple[str, ...] = ()
    """Names of the agents in this chat; empty if the connector does not know."""

    roles: tuple[str, ...] = ()
    """The sender's roles as reported by the platform, such as `admin`."""

    language: str = ""
    """The sender's language as the platform tells it, ISO 639-1; empty: unknown. Only
    the runtime's own words go by it, and only until the person's own is known.
    """

    is_bot: bool = False
    """Whether a bot wrote it that is not one of our agents."""

    attachments: tuple[Attachment, ...] = ()
    history: tuple[TranscriptLine, ...] = ()
    """Earlier lines that the client sent along, oldest first (stateless HTTP clients);
    of a `told` message, the lines that it adds to the conversation.
    """

    platform_fields: dict[str, str] = {}
    """Platform-specific fields such as guild and channel type, unchanged."""

    chain: DelegationChain = DelegationChain()
    """The delegation chain if an agent wrote this; empty for people."""

    occasion: Occasion = ""
    """Set when the runtime generated this message; empty for people. Generated messages
    are never commands or approvals.
    """

    lane: str = ""
    """Name of one of several parallel turns of an occasion, each in a conversation of
    its own. Empty: the turn belongs to the chat's conversation.
    """

    correlation_id: str = ""
    """Id of the person's message that caused this one; defaults to its own id."""

    origin_id: str = ""
    """The platform's id of that message, if an agent handed this one on; else empty."""

    others: int = 0
    """Number of further agents that heard this message; its answer announces their
    answers.
    """

    heard_by: int = 1
    """Number of agents that heard this message. The limits of one message are divided
    equally among them.
    """

    copy_of: int = 0
    """For a further agent's copy, the original's number in the inbox; otherwise 0."""

    is_hooked: bool = False
    """Whether inbound hooks have run; their changes are in its text."""

    changed_by: str = ""
    """Name of the hook that changed its text last. Changed texts never approve a tool
    call.
    """

    priority: int = 5
    """Priority among waiting turns, 1 to 10; lower is more urgent."""

    tokens: int = 0
    """Token limit of its turn, input and output together; 0 means no limit of its
    own.
    """

    traceparent: str = ""
    """Which step of a caller's trace it is a part of, in W3C's form; empty: of none."""

    def __post_init__(self) -> None:
        """Use the message's own id as correlation id unless one is given."""
        if not self.correlation_id:
            msgspec.structs.force_setattr(self, "correlation_id", self.id)

    @property
    def source_id(self) -> str:
        """The id by which the platform knows the message; empty: it does not."""
        if self.chain.agents or self.occasion:
            return ""
        is_shared = self.heard_by > 1
        own = f"+{self.agent}"
        return self.platform_id.removesuffix(own) if is_shared else self.platform_id

    @property
    def answered_id(self) -> str:
        """The platform's id of the person's message that an answer to this replies to.

        Empty: there is none.
        """
        return self.source_id or self.origin_id


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one model call, as counted by the provider."""

    input_tokens: int = 0
    """All input tokens, including those from the provider's cache."""

    output_tokens: int = 0
    cached_tokens: int = 0
    """The part of `input_tokens` that came from the provider's cache."""

    dollars: float = 0.0
    """What the model itself says that it cost, in US dollars; 0: it does not say."""

    def __add__(self, other: Usage) -> Usage:
        """Return the sum of two usages."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.dollars + other.dollars,
        )


class ToolSpec(msgspec.Struct, frozen=True):
    """Description of a tool for a model."""

    name: str
    description: str
    parameters: bytes
    """JSON schema of the arguments object."""

    is_repeatable: bool = False
    """Whether an interrupted call may be repeated. False for tools with side effects:
    the model is then told that the outcome is unknown.
    """

    is_own_words: bool = False
    """Whether its results contain only this program's own text. Other results are
    marked as untrusted before the model sees them.
    """

    effect: Literal["read", "write", "run"] = "run"
    """The strongest effect of a call: `read` looks something up, `write` changes the
    agent's own things, `run` may do anything. Approval rules depend on it.
    """


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a model."""

    model: str
    """The provider's name of the model."""

    agent: str
    """Name of the asking agent; for logs and the scripted model."""

    correlation_id: str
    system: str
    lines: tuple[TranscriptLine, ...]
    tools: tuple[ToolSpec, ...] = ()
    """Tools on offer; empty means that the model must answer in text."""

    temperature: float | None = None
    max_tokens: int | None = None
    """Longest answer in tokens; None uses the provider's default."""

    extra_body: bytes = b""
    """JSON object of further parameters in the provider's words; empty: none."""

    conversation: str = ""
    """Key of the session; for models that work in a folder per conversation."""

    owner: str = ""
    """Whose share it takes of a model's places, where few are shared by many: see
    `messages.keys.owner_of`. Empty: nobody's in particular."""

    resume: str = ""
    """The `resume` value of the previous answer in this conversation."""

    traceparent: str = ""
    """Which step of which trace it is a part of, in W3C's form; empty: of none."""

    notes: tuple[str, ...] = ()
    """Parts of `system`, at its end, that belong to this message alone. A model that
    keeps the conversation gets them again each time.
    """


class ModelAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A complete answer; a truncated one is an error instead."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    stop_reason: Literal["end", "tools", "length", "refused"] = "end"
    request_id: str = ""
    """The provider's id of the call, for its support; empty if it gave none."""

    resume: str = ""
    """Token with which the next request continues, for models that keep the
    conversation themselves; empty for all others.
    """


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """On whose behalf and in which chat a tool runs."""

    agent: str
    correlation_id: str
    address: Address
    sender_id: str
    caller: str = ""
    """See `Inbound.caller`."""

    skill: str = ""
    """The skill that a person's command asked for; usually empty."""

    is_direct: bool = False
    """Whether only the sender reads the answer."""

    accounts: tuple[str, ...] = ()
    """The sender's accounts; the first one identifies the person. Empty means
    `connector/sender_id`.
    """

    member: str = ""
    """The member that a conversation belongs to, in groups with one conversation per
    member.
    """

    @property
    def person(self) -> str:
        """The sender's first account, as `connector/sender_id`."""
        own = f"{self.address.connector}/{self.sender_id}"
        return self.accounts[0] if self.accounts else own

    @property
    def owner(self) -> str:
        """Whose share of places its calls take: see `owner_of`, or the person."""
        caller = f"{self.address.connector}/{self.caller}"
        return caller if self.caller else self.person


class ToolResult(msgspec.Struct, frozen=True):
    """The result of a tool call; untrusted text."""

    text: str
    is_error: bool = False
    images: tuple[Image, ...] = ()
    files: tuple[SentFile, ...] = ()
    """Files to send with the answer; only from tools of this program."""
