"""The events of a Chat Completions stream, put together to one answer.

Pure: fed with events, gives back the words as they come, and at the end either
a whole answer or an error. A stream counts as whole only with a finish reason
and the end marker `[DONE]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from actors.messages import ModelAnswer, ToolCall, Usage
from connectors.models.openai_errors import ErrorBody, Provider

if TYPE_CHECKING:
    from actors.messages import ModelRequest
    from connectors.models.openai_request import ToolNames
    from connectors.models.sse import SseEvent

END_MARKER = b"[DONE]"
MAX_ANSWER = 4 * 1024 * 1024
"""Most characters of words and arguments together."""

MAX_TOKENS = 10**9
"""Most tokens that one answer is believed to have cost."""

MAX_CALLS = 128
"""Most tool calls of one answer; the API itself offers at most 128 tools."""


class FunctionDelta(msgspec.Struct, frozen=True):
    """A piece of a called function."""

    name: str | None = None
    arguments: str | None = None


class CallDelta(msgspec.Struct, frozen=True):
    """A piece of a tool call."""

    index: int | None = None
    id: str | None = None
    function: FunctionDelta | None = None


class Delta(msgspec.Struct, frozen=True):
    """What one event adds."""

    content: str | None = None
    refusal: str | None = None
    tool_calls: tuple[CallDelta, ...] | None = None


class Choice(msgspec.Struct, frozen=True):
    """One of several answers; only the first was asked for."""

    index: int = 0
    delta: Delta | None = None
    finish_reason: str | None = None


class Counts(msgspec.Struct, frozen=True):
    """The provider's token counts."""

    prompt_tokens: int | float | None = None
    completion_tokens: int | float | None = None


class Chunk(msgspec.Struct, frozen=True):
    """One event's data."""

    choices: tuple[Choice, ...] | None = None
    usage: Counts | None = None
    error: ErrorBody | str | None = None


CHUNK = msgspec.json.Decoder(Chunk)


def believable(count: float | None) -> int:
    """Bring a provider's token count into bounds: counters take no negative ones."""
    return int(min(max(count or 0, 0), MAX_TOKENS))


class PartialCall:
    """A tool call whose pieces are still coming."""

    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.name = ""
        self.arguments: list[str] = []

    def add(self, piece: FunctionDelta) -> int:
        """Add a piece; gives back its length."""
        # Some send the name again with every piece, so only a new one is added.
        if piece.name and piece.name != self.name:
            self.name += piece.name
        if piece.arguments:
            self.arguments.append(piece.arguments)
        return len(piece.name or "") + len(piece.arguments or "")


class Assembly:
    """One answer in the making.

    Args:
        request: what was asked.
        names: how its tools were called towards the provider.
        provider: whom errors speak of.
    """

    def __init__(
        self, request: ModelRequest, names: ToolNames, provider: Provider
    ) -> None:
        self._request = request
        self._names = names
        self._provider = provider
        self._words: list[str] = []
        self._calls: list[PartialCall] = []
        self._at: dict[int, PartialCall] = {}
        self._size = 0
        self._usage = Usage()
        self._finish_reason = ""
        self._declined = False
        self._saw_end = False

    @property
    def is_whole(self) -> bool:
        """True once the stream has said all that its protocol asks for."""
        return self._saw_end and bool(self._finish_reason)

    def take(self, event: SseEvent) -> str:
        """Add an event; gives back the words it brings, often none.

        Raises:
            ModelBusyError: it breaks the protocol or a bound, or is an error.
            ModelRefusedError: it is an error that will come again.
        """
        if self._saw_end:
            return ""  # some say `[DONE]` twice; nothing counts after the first
        if event.data == END_MARKER:
            self._saw_end = True
            return ""
        try:
            chunk = CHUNK.decode(event.data)
        except (ValueError, RecursionError) as error:
            raise self._provider.busy(
                f"broke the protocol: an event is not as the API says ({error})"
            ) from error
        if chunk.error is not None:
            raise self._provider.stream_error(chunk.error)
        if chunk.usage is not None:
            self._usage = Usage(
                believable(chunk.usage.prompt_tokens),
                believable(chunk.usage.completion_tokens),
            )
        words = "".join(self._take_choice(choice) for choice in chunk.choices or ())
        if words:
            self._words.append(words)
        return words

    def _take_choice(self, choice: Choice) -> str:
        if choice.index != 0:
            return ""
        delta = choice.delta or Delta()
        words = (delta.content or "") + (delta.refusal or "")
        if self._finish_reason and (words or delta.tool_calls):
            raise self._provider.busy("broke the protocol: it went on after its end")
        self._declined = self._declined or bool(delta.refusal)
        self._grow(len(words))
        for piece in delta.tool_calls or ():
            self._take_call(piece)
        self._finish_reason = choice.finish_reason or self._finish_reason
        return words

    def _take_call(self, piece: CallDelta) -> None:
        index = len(self._calls) if piece.index is None else piece.index
        if piece.index is None and not piece.id and self._calls:
            index = len(self._calls) - 1  # goes on with the call before
        call = self._at.get(index)
        # Some number all parallel calls 0 and tell them apart by id only.
        if call is None or (piece.id and call.id and piece.id != call.id):
            if len(self._calls) == MAX_CALLS:
                raise self._provider.busy(f"called more than {MAX_CALLS} tools")
            call = PartialCall(piece.id or "")
            self._calls.append(call)
            self._at[index] = call
        call.id = call.id or piece.id or ""
        self._grow(len(call.id))
        if piece.function is not None:
            self._grow(call.add(piece.function))

    def _grow(self, characters: int) -> None:
        self._size += characters
        if self._size > MAX_ANSWER:
            raise self._provider.busy(f"the answer is above {MAX_ANSWER} characters")

    def finish(self) -> ModelAnswer:
        """Give the whole answer, after the last event.

        Raises:
            ModelBusyError: the stream was cut off before its end, or broke the
                protocol.
            ModelRefusedError: the answer was stopped by the provider's filter, or
                a tool call by the token limit.
        """
        if not self.is_whole:
            missing = "its end marker" if self._finish_reason else "a finish reason"
            raise self._provider.busy(f"the stream ended without {missing}")
        if self._finish_reason == "error":
            raise self._provider.busy("gave up in mid-answer")
        if self._finish_reason == "content_filter":
            raise self._provider.refused("its content filter stopped the answer")
        calls = self._finish_calls()
        return ModelAnswer(
            text="".join(self._words),
            tool_calls=calls,
            usage=self._usage,
            stop_reason="tools" if calls else self._stop_reason(),
        )

    def _stop_reason(self) -> Literal["end", "length", "refused"]:
        if self._finish_reason == "length":
            return "length"
        return "refused" if self._declined else "end"

    def _finish_calls(self) -> tuple[ToolCall, ...]:
        if not self._calls:
            return ()
        if not self._request.tools:
            if self._words:
                return ()
            raise self._provider.busy("called a tool though none was offered")
        if self._finish_reason == "length":
            raise self._provider.refused(
                "max_tokens was reached in the middle of a tool call; allow more"
            )
        if not all(call.name for call in self._calls):
            raise self._provider.busy("broke the protocol: a tool call has no name")
        return tuple(
            ToolCall(
                # Unique in its conversation, for those who send none.
                id=call.id or f"call_{len(self._request.lines)}_{number}",
                name=self._names.ours(call.name),
                arguments="".join(call.arguments).encode() or b"{}",
            )
            for number, call in enumerate(self._calls)
        )
