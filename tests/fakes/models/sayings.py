"""What a provider may say, in no format yet; and what a format is for these tests."""

from __future__ import annotations

import base64
from typing import Literal, Protocol

import msgspec

from connectors.config.models import HttpModelConfig
from connectors.models.http.client import HttpModel

KEY = "sk-very-secret-0123456789"
NOW = 1_700_000_000.0
JSON = "application/json"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA"
    "AABJRU5ErkJggg=="
)

Ending = Literal["end", "length", "filtered"]


class Saying(msgspec.Struct, frozen=True):
    """An answer, whatever its format."""

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    """Name and arguments of the tools it calls."""

    ending: Ending = "end"
    thoughts: str = ""


class Sent(msgspec.Struct, frozen=True):
    """What the fakes read of a request."""

    words: str
    """Of its last line."""

    has_tools: bool


class Dialect(Protocol):
    """One format."""

    name: str
    media_type: str
    path: str

    def events(self, said: Saying) -> list[bytes]:
        """Write an answer as the events of a stream, in order."""
        ...

    def body(self, said: Saying) -> bytes:
        """Write an answer in one piece."""
        ...

    def read(self, body: bytes) -> Sent:
        """Read a request."""
        ...

    def error(self, message: str, kind: str) -> bytes:
        """Write the body of an error; `kind` is a kind of `ModelFault`."""
        ...

    def make(self, config: HttpModelConfig, *rest: object) -> HttpModel:
        """Make the model that speaks it."""
        ...


def deaf(_: str) -> None:
    """Hear nothing."""


def json(**fields: object) -> bytes:
    """Write an object."""
    return msgspec.json.encode(fields)


def decoded(arguments: str) -> object:
    """Read a call's arguments."""
    return msgspec.json.decode(arguments) if arguments else {}


def pieces(text: str, size: int = 3) -> list[str]:
    """Cut a text as models do."""
    return [text[at : at + size] for at in range(0, len(text), size)]


Errors = dict[str, dict[str, object]]
