r"""What has come of one answer so far, whatever its format.

Pure. Keeps the bounds, gives calls ids of their own, and knows which ends are good:
the formats' assemblies read events and say here what they found.

Some providers cut texts in the middle of a character: a server written in JavaScript
counts in halves of what is above the basic plane, so an emoji may come as `\ud83d` in
one event and `\udc08` in the next. Neither is a character, and a strict decoder takes
neither; `decode` makes each U+FFFD, because one spoilt sign is better than no answer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeVar

from actors.messages.inbound import ModelAnswer, ModelRequest, ToolCall, Usage

if TYPE_CHECKING:
    import msgspec

    from connectors.models.names import ToolNames
    from connectors.models.provider_errors import ErrorContext

MAX_ANSWER = 4 * 1024 * 1024
"""Most characters of words and arguments together."""

# Chosen: the largest windows there are take ten million.
MAX_TOKENS = 20 * 10**6
"""Most tokens that one answer is believed to have cost."""

MAX_CALLS = 128
"""Most tool calls of one answer; OpenAI offers at most 128 tools."""

MAX_REQUEST_ID = 200
"""Most characters of a provider's id of a call."""

Ending = Literal["end", "length", "refused"]
"""Why the model stopped: it was done, or at its limit; or it declined in words."""


Decoded = TypeVar("Decoded")

HALF = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


def decode(decoder: msgspec.json.Decoder[Decoded], text: bytes) -> Decoded:
    """Decode, and mend what is only half a character.

    Raises:
        ValueError: it is no JSON of that shape.
        RecursionError: it is nested too deeply.
    """
    try:
        return decoder.decode(text)
    except ValueError:
        mended = HALF.sub(rb"\\ufffd", text)
        if mended == text:
            raise
        return decoder.decode(mended)


class PartialCall:
    """A tool call whose pieces are still coming."""

    def __init__(self, call_id: str, name: str = "") -> None:
        self.id = call_id
        self.name = name
        self.arguments: list[str] = []


class Collected:
    """One answer in the making.

    Args:
        request: what was asked.
        names: how its tools were called towards the provider.
        provider: whom errors speak of.
    """

    def __init__(
        self, request: ModelRequest, names: ToolNames, provider: ErrorContext
    ) -> None:
        self._request = request
        self._names = names
        self._provider = provider
        self._words: list[str] = []
        self._size = 0
        self.calls: list[PartialCall] = []
        self.usage = Usage()
        self.request_id = ""
        """As the body says it."""

    def say(self, words: str) -> None:
        """Add words.

        Raises:
            ModelBusyError: the answer is too large.
        """
        self._words.append(self.grown(words))

    def call(self, call_id: str, name: str = "") -> PartialCall:
        """Begin a tool call.

        Raises:
            ModelBusyError: there are too many.
        """
        if len(self.calls) == MAX_CALLS:
            text = f"called more than {MAX_CALLS} tools"
            raise self._provider.busy(text, "protocol")
        call = PartialCall(self.grown(call_id), self.grown(name))
        self.calls.append(call)
        return call

    def argue(self, call: PartialCall, arguments: str) -> None:
        """Add a piece of a call's arguments.

        Raises:
            ModelBusyError: the answer is too large.
        """
        call.arguments.append(self.grown(arguments))

    def grown(self, piece: str) -> str:
        """Count a piece towards the answer's size, and give it back.

        Raises:
            ModelBusyError: the answer is too large.
        """
        self._size += len(piece)
        if self._size > MAX_ANSWER:
            text = f"the answer is above {MAX_ANSWER} characters"
            raise self._provider.busy(text, "protocol")
        return piece

    def finish(self, ending: Ending, request_id: str) -> ModelAnswer:
        """Give the whole answer.

        Args:
            ending: how the provider says that it ended.
            request_id: from a header; the body's own stands in for it.

        Raises:
            ModelBusyError: it is empty, or calls a tool that it cannot call.
            ModelRefusedError: the token limit left nothing of use.
        """
        calls = self._finish_calls(ending)
        text = "".join(self._words)
        if not calls and not text.strip():
            self._check_silence(ending)
        return ModelAnswer(
            text=text,
            tool_calls=calls,
            usage=self.usage,
            stop_reason="tools" if calls else ending,
            request_id=(request_id or self.request_id)[:MAX_REQUEST_ID],
        )

    def _check_silence(self, ending: Ending) -> None:
        """Take silence for an answer only from a model whose tools did what was asked.

        Models do end so after a tool's result; the turn then says that all is done.
        """
        if ending == "length":
            raise self._provider.refused(
                "max_tokens was reached before the first word; allow more",
                "bad_request",
            )
        lines = self._request.lines
        if not lines or lines[-1].role != "tool":
            raise self._provider.busy("gave an empty answer", "protocol")

    def _finish_calls(self, ending: Ending) -> tuple[ToolCall, ...]:
        if not self.calls:
            return ()
        if not self._request.tools:
            if self._words:
                return ()
            text = "called a tool though none was offered"
            raise self._provider.busy(text, "protocol")
        if ending == "length":
            raise self._provider.refused(
                "max_tokens was reached in the middle of a tool call; allow more",
                "bad_request",
            )
        if not all(call.name for call in self.calls):
            raise self._provider.broken("a tool call has no name")
        ids = self._unique_ids()
        return tuple(
            ToolCall(
                id=call_id,
                name=self._names.ours(call.name),
                arguments="".join(call.arguments).encode() or b"{}",
            )
            for call_id, call in zip(ids, self.calls, strict=True)
        )

    def _unique_ids(self) -> list[str]:
        """Give every call an id of its own, for those who send none, or one twice."""
        used: set[str] = set()
        for number, call in enumerate(self.calls):
            # The number of lines makes it unique in its conversation.
            made = f"call_{len(self._request.lines)}_{number}"
            call.id = call.id if call.id and call.id not in used else made
            used.add(call.id)
        return [call.id for call in self.calls]


class StreamedAnswer:
    """What the assemblies of all formats share; see `connectors/models/format.py`.

    Args:
        request: what was asked.
        names: how its tools were called towards the provider.
        provider: whom errors speak of.
    """

    def __init__(
        self, request: ModelRequest, names: ToolNames, provider: ErrorContext
    ) -> None:
        self._request = request
        self._provider = provider
        self._collected = Collected(request, names, provider)

    @property
    def usage(self) -> Usage:
        """The tokens told so far."""
        return self._collected.usage

    def end(self) -> None:
        """Do nothing at the end of the body: most formats have an end of their own."""

    def _decode(
        self,
        decoder: msgspec.json.Decoder[Decoded],
        text: bytes,
        what: str = "an event",
    ) -> Decoded:
        try:
            return decode(decoder, text)
        except (ValueError, RecursionError) as error:
            told = f"{what} is not as the API says ({error})"
            raise self._provider.broken(told) from error


def believable(
    read: float | None, written: float | None, cached: float | None = 0
) -> Usage:
    """Take a provider's token counts, or none if they cannot be true.

    Args:
        read: what was read, the cache's part included.
        written: what was written.
        cached: the cache's part.
    """
    counts = [count or 0 for count in (read, written, cached)]
    if not all(0 <= count <= MAX_TOKENS for count in counts):
        return Usage()
    return Usage(*map(int, counts))
