"""The domain's error tree; edges translate their libraries' errors into these.

ChatError
├── ModelError                 carries what to log, and of which kind it is
│   ├── ModelBusyError         try again; may know after how many seconds
│   └── ModelRefusedError      trying again cannot help (key, quota, content)
├── ToolError                  the tool ran and failed; the model is told the text
├── UnknownAgentError          no agent of that name; knows near misses
├── OverloadedError            too much in flight; try again
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
"""What went wrong with a model call: too many calls for now (`rate`); the account is
used up (`quota`) or not let in (`auth`); the provider has too much to do (`overload`);
the transcript is too long (`context`), or has pictures that the model cannot see
(`vision`); the request is wrong (`bad_request`); a filter
stopped it (`content`); the connection failed (`network`), what came was no whole answer
(`protocol`), or nothing came in time (`timeout`)."""


NOT_STORED = "the message cannot be stored now"
"""All that people and clients are told of the store: where it lies, and what mends it,
is for whoever runs it, in the log."""


class ChatError(Exception):
    """Base of everything the domain raises itself."""


class EndedByHandError(ChatError):
    """The operator killed an actor: what its supervisor takes for its failure."""


class ModelError(ChatError):
    """A model did not give a whole answer.

    Args:
        text: what happened, without secrets.
        kind: what to do about it depends on this, never on the text.

    Attributes:
        tokens: read, written, and read from the cache, as far as the provider said
            before it failed; whoever raises the error may set them.
    """

    def __init__(self, text: str, *, kind: ModelFault) -> None:
        super().__init__(text)
        self.kind: ModelFault = kind
        self.tokens: tuple[int, int, int] = (0, 0, 0)


class ModelBusyError(ModelError):
    """The model cannot answer now: rate limit, overload, network, cut stream.

    Args:
        text: what happened, without secrets.
        kind: as in `ModelError`.
        retry_after: seconds the provider asked us to wait, or None.
    """

    def __init__(
        self,
        text: str,
        *,
        kind: ModelFault = "overload",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(text, kind=kind)
        self.retry_after = retry_after


class ModelRefusedError(ModelError):
    """The model will not answer this: bad key, no quota, refused content.

    Args:
        text: what happened, without secrets.
        kind: as in `ModelError`.
    """

    def __init__(self, text: str, *, kind: ModelFault = "bad_request") -> None:
        super().__init__(text, kind=kind)


class ToolError(ChatError):
    """A tool ran and failed; its text is given to the model as the result."""


class UnknownAgentError(ChatError):
    """No agent of that name is running.

    Args:
        name: the name asked for.
        known: the names that exist.
    """

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"there is no agent {name!r}; known: {', '.join(known)}")
        self.name = name
        self.known = known


class OverloadedError(ChatError):
    """Too much is in flight, or the disk is slow: not confirmed, try again."""


class StoppingError(ChatError):
    """The runtime is about to end and takes nothing more in; try again later."""


class MessageRefusedError(ChatError):
    """This message will never be taken as it is; nothing was stored."""


class SenderRefusedError(MessageRefusedError):
    """Whoever wrote it may not write here; nothing was stored."""


class DeliveryError(ChatError):
    """A platform did not take a message."""


class DeliveryBusyError(DeliveryError):
    """The platform cannot take the message now.

    Args:
        text: what happened, without secrets.
        retry_after: seconds the platform asked us to wait, or None.
    """

    def __init__(self, text: str, *, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class DeliveryUnknownError(DeliveryError):
    """The platform was asked and its answer got lost: said, or not."""


class DeliveryRefusedError(DeliveryError):
    """The platform will never take this message (chat gone, forbidden)."""
