r"""What a wire format is: the ports between the talking and what is said.

A format writes a request, names what frames the answer, puts its events together and
reads its provider's errors. It knows no connection and no clock; `http/client.py` knows
nothing of any format. What several formats need stands here, too; all of it is pure.

- `StreamedAnswer`: what has come of one answer so far. It keeps the bounds, gives calls
  ids of their own, and knows which ends are good. Some providers cut texts in the
  middle of a character: a server written in JavaScript counts in halves of what is
  above the basic plane, so an emoji may come as `\ud83d` in one event and `\udc08` in
  the next. Neither is a character, and a strict decoder takes neither; `decode` makes
  each U+FFFD, because one spoilt sign is better than no answer.
- `CallMemory`: what a provider gave with a tool call and wants back with it. A
  transcript keeps the call alone, and a model that has thought before it called goes on
  from that thought. It is remembered as long as it may be wanted; a call that is not,
  after a restart or of another provider, is sent without.
- `ToolNames`, `CallIds` and turns as providers allow them. Names that a provider would
  refuse are changed on the way out and back; nobody else sees the changed ones.
  Anthropic and Google want turns: the user begins and ends, tool results are in the
  user's turn, and what follows each other in one role is one turn.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Generic, Literal, Protocol, TypeVar

import msgspec

from actors.messages.inbound import (
    ModelAnswer,
    ModelRequest,
    ToolCall,
    ToolSpec,
    TranscriptLine,
    Usage,
)
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
            ModelBusyError: the stream was cut off before its end, or broke the
                protocol.
            ModelRefusedError: the answer was stopped by the provider's filter, or
                a tool call by the token limit.
        """
        ...


class Framing(Protocol):
    """Cuts a streamed body into events."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes; give back the events they complete, in order.

        Raises:
            connectors.models.http.client.TooLargeError: an event is too large.
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
        names: how its tools were called towards the provider.
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
        names: how its tools were called towards the provider.
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
            call_id: as the transcript has it.
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


# Source: the references of OpenAI (`tools[].function.name`), Anthropic
# (`tools[].name`) and Google (`functionDeclarations[].name`, which must begin with a
# letter); this is what all three allow.
FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")
MAX_NAME = 64


class ToolNames:
    """The tools' names as providers allow them, and back.

    Args:
        tools: the tools on offer; two never share a name as sent.
    """

    def __init__(self, tools: tuple[ToolSpec, ...]) -> None:
        self._ours: dict[str, str] = {}
        for tool in tools:
            name = allowed_tool_name(tool.name)
            unique, number = name, 1
            while unique in self._ours:
                number += 1
                unique = f"{name[: MAX_NAME - 8]}_{number}"
            self._ours[unique] = tool.name
        self._sent = {ours: sent for sent, ours in self._ours.items()}

    def sent(self, name: str) -> str:
        """Translate a tool's name for the provider."""
        return self._sent.get(name) or allowed_tool_name(name)

    def ours(self, name: str) -> str:
        """Translate back; a name that was not on offer stays as it is."""
        return self._ours.get(name, name)


class CallIds:
    """The ids of a transcript's tool calls as providers allow them, each once.

    Why: a transcript may hold calls of another provider, whose ids look different, or
    of one that numbers them afresh in each answer. Results follow their calls.
    """

    def __init__(self) -> None:
        self._sent: dict[str, str] = {}
        self._used: set[str] = set()

    def of_call(self, call_id: str) -> str:
        """Translate the id of a call."""
        plain = allowed_name(call_id) or "call"
        unique, number = plain, 1
        while unique in self._used:
            number += 1
            unique = f"{plain[: MAX_NAME - 8]}_{number}"
        self._used.add(unique)
        self._sent[call_id] = unique
        return unique

    def of_result(self, call_id: str) -> str:
        """Translate the id that a result carries: the newest call of that id."""
        return self._sent.get(call_id) or allowed_name(call_id) or "call"


def allowed_tool_name(name: str) -> str:
    """Change what providers forbid in a tool's name; never empty."""
    allowed = allowed_name(name) or "tool"
    return allowed if allowed[0].isalpha() else f"t_{allowed}"[:MAX_NAME]


def allowed_name(name: str) -> str:
    """Change what providers forbid in a name; empty if nothing of it can stay."""
    return FORBIDDEN.sub("_", name).strip("_")[:MAX_NAME]


EARLIER = "[Earlier messages are not shown.]"
"""Begins a transcript whose beginning was cut off before an answer."""

GO_ON = "[Go on.]"
"""Ends a transcript whose last words are the model's own."""


class Turn(msgspec.Struct, frozen=True):
    """What one side says before the other does."""

    is_user: bool
    lines: tuple[TranscriptLine, ...]


def turns(lines: Iterable[TranscriptLine]) -> Iterator[Turn]:
    """Group a transcript into turns; the first and the last are the user's."""
    is_user = False
    is_first = True
    for is_user, group in groupby(lines, key=is_users):
        if is_first and not is_user:
            yield Turn(is_user=True, lines=(TranscriptLine("user", EARLIER),))
        is_first = False
        yield Turn(is_user=is_user, lines=tuple(group))
    if not is_user:
        yield Turn(is_user=True, lines=(TranscriptLine("user", GO_ON),))


def is_users(line: TranscriptLine) -> bool:
    """Tell whether a line is in the user's turn: all but the model's own are."""
    return line.role != "assistant"
