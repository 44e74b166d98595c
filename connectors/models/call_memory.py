"""What a provider gave with a tool call and wants back with it.

Why: a transcript keeps the call alone, and a model that has thought before it called
goes on from that thought. It is remembered here, as long as it may be wanted; a call
that is not, after a restart or of another provider, is sent without.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from actors.messages.inbound import ModelRequest

Kept = TypeVar("Kept")
Key = tuple[str, str, str]

MOST_BYTES = 32 * 1024 * 1024
"""Of all that one account remembers."""

MOST_OF_ONE = 512 * 1024
"""Bytes of one call's; more is not remembered."""

OWN_BYTES = 512
"""What an entry takes by itself, at most; so there are at most 65,536."""


class CallMemory(Generic[Kept]):
    """The newest calls of one account, by model, conversation and our id of the call.

    By conversation, because some providers give the same ids in each.
    """

    def __init__(self) -> None:
        self._calls: OrderedDict[Key, tuple[Kept, int]] = OrderedDict()
        self._bytes = 0

    def keep(self, request: ModelRequest, call_id: str, kept: Kept, size: int) -> None:
        """Remember what came with a call; the oldest are forgotten for it.

        Args:
            request: what it answers.
            call_id: as the transcript has it.
            kept: what came with it.
            size: bytes that it takes.
        """
        if size > MOST_OF_ONE:
            return
        key = key_of(request, call_id)
        self._forget(self._calls.pop(key, None))
        self._calls[key] = (kept, size + OWN_BYTES)
        self._bytes += size + OWN_BYTES
        while self._bytes > MOST_BYTES:
            self._forget(self._calls.popitem(last=False)[1])

    def find(self, request: ModelRequest, call_id: str) -> Kept | None:
        """Find what came with a call of a request's transcript; None: unknown."""
        found = self._calls.get(key_of(request, call_id))
        return found[0] if found else None

    def _forget(self, entry: tuple[Kept, int] | None) -> None:
        self._bytes -= entry[1] if entry else 0


def key_of(request: ModelRequest, call_id: str) -> Key:
    """Name a call of a request's conversation."""
    return (request.model, request.conversation, call_id)
