"""What a wire format is: the ports between the talking and what is said.

A format writes a request, names what frames the answer, puts its events together
and reads its provider's errors. It knows no connection and no clock; `http/client.py`
knows nothing of any format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from actors.messages.inbound import ModelAnswer, ModelRequest, Usage
    from connectors.models.provider_errors import ErrorContext, Said


class Assembly(Protocol):
    """One answer in the making."""

    @property
    def is_whole(self) -> bool:
        """True once all has come that the protocol asks for; what follows is late."""
        ...

    @property
    def usage(self) -> Usage:
        """The tokens that the provider told of so far."""
        ...

    def take(self, event: bytes) -> str:
        """Add an event of a stream; gives back the words it brings, often none.

        Raises:
            actors.errors.ModelError: it breaks the protocol or a bound, or is an error.
        """
        ...

    def take_whole(self, body: bytes) -> str:
        """Read an answer that came in one piece; gives back its words.

        Raises:
            actors.errors.ModelError: as for `take`.
        """
        ...

    def end(self) -> None:
        """Learn that the body has ended, cleanly by HTTP."""
        ...

    def finish(self, request_id: str) -> ModelAnswer:
        """Give the whole answer.

        Args:
            request_id: the provider's id of the call, from a header; or empty.

        Raises:
            actors.errors.ModelError: it is not whole, or its end is no good one.
        """
        ...


class Framing(Protocol):
    """Cuts a streamed body into events."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes; give back the events they complete, in order.

        Raises:
            connectors.models.http.reading.TooLargeError: an event is too large.
        """
        ...

    def end(self) -> list[bytes]:
        """Give what a clean end completes."""
        ...


class Question(msgspec.Struct, frozen=True):
    """A request in its format's words."""

    path: str
    """Follows `base_url`, query included."""

    body: bytes
    assembly: Assembly
    traceparent: str = ""
    """As in `ModelRequest`."""

    extra_body: bytes = b""
    """JSON object that is merged into the body; empty: none."""


class Format(Protocol):
    """The wire format of one vendor, such as `connectors/models/openai/model.py`."""

    takes_names: bool
    """Whether a line can say who spoke."""

    stream_type: str
    """Media type of a streamed answer."""

    request_id_header: str
    """Which header of a response holds the call's id; empty: none."""

    def headers(self, key: str) -> dict[str, str]:
        """Make the headers that this kind of provider wants."""
        ...

    def framing(self) -> Framing:
        """Make what cuts a streamed answer into events."""
        ...

    def ask(self, request: ModelRequest, provider: ErrorContext) -> Question:
        """Write a request."""
        ...

    def read_error(self, body: bytes) -> Said:
        """Find the error in a response's body, whatever shape it has."""
        ...
