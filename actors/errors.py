"""The domain's error tree; connectors translate their libraries' errors into these.

ChatError
├── ModelError                 carries what to log, and of which kind it is
│   ├── ModelBusyError         try again; may know after how many seconds
│   └── ModelRefusedError      trying again cannot help (key, quota, content)
├── ToolError                  the tool ran and failed; the model is told the text
├── UnknownAgentError          no agent of that name; knows near misses
├── OverloadedError            too much in flight; try again
│   └── UnconfirmedError       no answer whether it was taken, whatever is in flight
├── MisdirectedError           another node works on that chat; nothing was stored
├── EndedByHandError           the operator killed this actor
├── StoppingError              the runtime is about to end; try again after its start
├── MessageRefusedError        this message will never be taken; change it
│   └── SenderRefusedError     nor any other of this sender's, as things are
└── DeliveryError              the platform did not take a message
    ├── DeliveryBusyError      try again; may know after how many seconds
    ├── DeliveryUnknownError   asked, and nobody knows whether it was said
    └── DeliveryRefusedError   trying again cannot help
"""

from __future__ import annotations

from typing import Literal

ModelFault = Literal[
    "rate",
    "quota",
    "auth",
    "overload",
    "context",
    "vision",
    "bad_request",
    "content",
    "network",
    "protocol",
    "timeout",
]
"""Kind of a failed model call: rate limited (`rate`); account used up (`quota`) or
refused (`auth`); provider overloaded (`overload`); transcript too long (`context`) or
with pictures for a model without vision (`vision`); invalid request (`bad_request`);
blocked by a filter (`content`); connection failed (`network`); incomplete or invalid
answer (`protocol`); no answer in time (`timeout`).
"""


NOT_STORED = "the message cannot be stored now"
"""The only text about the store that people and clients see. Paths and remedies are
logged for the operator.
"""


class ChatError(Exception):
    """Base of all errors that the domain raises."""


class EndedByHandError(ChatError):
    """The operator killed an actor; its supervisor treats this as a failure."""


class ModelError(ChatError):
    """A model gave no complete answer.

    Args:
        kind: decides what is done about it; the text never does.
        plain: what of the text quotes nobody, for a log; empty: perhaps nothing.

    Attributes: tokens: the fields of `Usage` that the provider reported before it
        failed; set by the raiser if known.
    """

    def __init__(self, text: str, *, kind: ModelFault, plain: str = "") -> None:
        super().__init__(text)
        self.kind: ModelFault = kind
        self.plain = plain
        self.tokens: tuple[int, int, int, float] = (0, 0, 0, 0.0)


class ModelBusyError(ModelError):
    """The model cannot answer now: rate limit, overload, network, truncated stream.

    Args:
        kind: as in `ModelError`.
        retry_after: seconds that the provider asked to wait, or None.
    """

    def __init__(
        self,
        text: str,
        *,
        kind: ModelFault = "overload",
        plain: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(text, kind=kind, plain=plain)
        self.retry_after = retry_after


class ModelRefusedError(ModelError):
    """The model will never answer this: bad key, no quota, refused content.

    Args:
        kind: as in `ModelError`.
    """

    def __init__(
        self, text: str, *, kind: ModelFault = "bad_request", plain: str = ""
    ) -> None:
        super().__init__(text, kind=kind, plain=plain)


class ToolError(ChatError):
    """A tool ran and failed; the model gets the text as the result."""


class UnknownAgentError(ChatError):
    """No agent of that name is running."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"there is no agent {name!r}; known: {', '.join(known)}")
        self.name = name
        self.known = known


class OverloadedError(ChatError):
    """Too much is in flight; not stored for certain, try again."""


class UnconfirmedError(OverloadedError):
    """The message was not confirmed in time, or the company is still starting.

    The sender did not send too much: over HTTP this is 503, not 429. The message may be
    stored; a repeat under the same id counts once.
    """


class MisdirectedError(ChatError):
    """A message came to a node that does not work on its chat; nothing was stored."""


class StoppingError(ChatError):
    """The runtime is stopping and accepts nothing; try again after its start."""


class MessageRefusedError(ChatError):
    """This message will never be accepted unchanged; nothing was stored."""


class SenderRefusedError(MessageRefusedError):
    """The sender may not write here; nothing was stored."""


class DeliveryError(ChatError):
    """A platform did not accept a message."""


class DeliveryBusyError(DeliveryError):
    """The platform cannot accept the message now.

    Args:
        retry_after: seconds that the platform asked to wait, or None.
    """

    def __init__(self, text: str, *, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class DeliveryUnknownError(DeliveryError):
    """The platform's answer was lost; the message may or may not have been sent."""


class DeliveryRefusedError(DeliveryError):
    """The platform will never accept this message (chat gone, forbidden)."""
