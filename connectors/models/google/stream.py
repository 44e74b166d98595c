"""An answer of Google's generateContent, from its events or in one piece.

Pure: fed with events, gives back the words as they come, and at the end either a whole
answer or an error. The format has no end marker, and some models say a finish reason
with every event; so a stream counts as whole only with a finish reason and after a
clean end of the body. Parts that are thoughts are skipped: they are not for people.
"""

from __future__ import annotations

import msgspec

from actors.messages.inbound import ModelAnswer, ModelRequest, Usage
from connectors.models.answer import Ending, PartialCall, StreamedAnswer, believable
from connectors.models.google.errors import ErrorBody, said_by
from connectors.models.google.request import CallSignature, Signatures
from connectors.models.names import ToolNames
from connectors.models.provider_errors import ErrorContext

# Source: the API's reference of `FinishReason`.
FILTERED = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
    }
)


ENDED = frozenset({"STOP", "MAX_TOKENS", "FUNCTION_CALL"})
"""The last is not the API's own: servers that stand in for it end calls so."""


class FunctionCall(msgspec.Struct, frozen=True):
    """A tool call, always whole."""

    name: str = ""
    args: msgspec.Raw = msgspec.Raw(b"{}")
    id: str = ""


class Part(msgspec.Struct, frozen=True, rename="camel"):
    """One piece of the answer."""

    text: str | None = None
    thought: bool = False
    function_call: FunctionCall | None = None
    thought_signature: str = ""


class Content(msgspec.Struct, frozen=True):
    """What a candidate says."""

    parts: tuple[Part, ...] | None = None


class Candidate(msgspec.Struct, frozen=True, rename="camel"):
    """One of several answers; only the first was asked for."""

    index: int = 0
    content: Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class Feedback(msgspec.Struct, frozen=True, rename="camel"):
    """What the provider thinks of the request."""

    block_reason: str | None = None


class GoogleCounts(msgspec.Struct, frozen=True, rename="camel"):
    """The provider's token counts; later ones replace earlier ones."""

    prompt_token_count: int | float | None = None
    tool_use_prompt_token_count: int | float | None = None
    cached_content_token_count: int | float | None = None
    candidates_token_count: int | float | None = None
    thoughts_token_count: int | float | None = None

    def usage(self) -> Usage:
        """Read them; the cache's part is among what was read, thoughts are written."""
        read = (self.prompt_token_count or 0) + (self.tool_use_prompt_token_count or 0)
        written = (self.candidates_token_count or 0) + (self.thoughts_token_count or 0)
        return believable(read, written, self.cached_content_token_count)


class Chunk(msgspec.Struct, frozen=True, rename="camel"):
    """One event's data, or a whole answer."""

    candidates: tuple[Candidate, ...] | None = None
    prompt_feedback: Feedback | None = None
    usage_metadata: GoogleCounts | None = None
    response_id: str | None = None
    error: ErrorBody | None = None


CHUNK = msgspec.json.Decoder(Chunk)


class Assembly(StreamedAnswer):
    """One answer in the making."""

    def __init__(
        self,
        request: ModelRequest,
        names: ToolNames,
        provider: ErrorContext,
        signatures: Signatures,
    ) -> None:
        self._signatures = signatures
        super().__init__(request, names, provider)
        self._came_with: list[tuple[PartialCall, CallSignature]] = []
        self._finish_reason = ""
        self._finish_message = ""
        self._is_ended = False

    @property
    def is_whole(self) -> bool:
        """True once the body has ended, and has said why the model stopped."""
        return self._is_ended and bool(self._finish_reason)

    def take(self, event: bytes) -> str:
        """Add an event; see the port."""
        chunk = self._decode(CHUNK, event)
        if chunk.error is not None:
            raise self._provider.stream_error(said_by(chunk.error))
        feedback = chunk.prompt_feedback
        if feedback is not None and feedback.block_reason:
            why = self._provider.quote(feedback.block_reason)
            raise self._provider.refused(
                f"its content filter refused the request{why}", "content"
            )
        if chunk.usage_metadata is not None:
            self._collected.usage = chunk.usage_metadata.usage()
        if chunk.response_id:
            self._collected.request_id = chunk.response_id
        words = ""
        for candidate in chunk.candidates or ():
            if candidate.index == 0:
                words += self._take_candidate(candidate)
        return words

    def take_whole(self, body: bytes) -> str:
        """Read an answer in one piece: the same shape as an event."""
        return self.take(body)

    def _take_candidate(self, candidate: Candidate) -> str:
        words = ""
        content = candidate.content or Content()
        for part in content.parts or ():
            if part.function_call is not None:
                self._take_call(part.function_call, part.thought_signature)
            elif part.text and not part.thought:
                words += part.text
        if words:
            self._collected.say(words)
        self._finish_reason = candidate.finish_reason or self._finish_reason
        self._finish_message = candidate.finish_message or self._finish_message
        return words

    def _take_call(self, said: FunctionCall, signature: str) -> None:
        call = self._collected.call("", said.name)
        arguments = bytes(said.args).decode()
        # Some say nothing for a tool without parameters.
        self._collected.argue(call, "{}" if arguments == "null" else arguments)
        self._came_with.append((call, CallSignature(said.id, signature)))

    def end(self) -> None:
        """Learn that all has come."""
        self._is_ended = True

    def finish(self, request_id: str) -> ModelAnswer:
        """Give the whole answer, after the last event.

        Raises:
            ModelBusyError: the stream was cut off before its end, or broke the
                protocol, or the model made a call that is none.
            ModelRefusedError: the answer was stopped by the provider's filter, or
                a tool call by the token limit.
        """
        if not self.is_whole:
            missing = "its end" if self._finish_reason else "a finish reason"
            text = f"the stream ended without {missing}"
            raise self._provider.busy(text, "protocol")
        reason = self._finish_reason
        if reason in FILTERED:
            text = f"its content filter stopped the answer: {reason}"
            raise self._provider.refused(text, "content")
        if reason not in ENDED:
            # MALFORMED_FUNCTION_CALL and the like: another try often goes well.
            why = self._provider.quote(f"{reason} {self._finish_message}")
            raise self._provider.busy(f"gave up in mid-answer{why}", "protocol")
        self._name_calls()
        ending: Ending = "length" if reason == "MAX_TOKENS" else "end"
        return self._collected.finish(ending, request_id)

    def _name_calls(self) -> None:
        """Make ids that are unique over all conversations, and remember by them."""
        response_id = self._collected.request_id
        if not response_id:
            return
        for number, (call, remembered) in enumerate(self._came_with):
            call.id = f"{response_id[:48]}_{number}"
            if remembered != CallSignature():
                size = len(remembered.id) + len(remembered.signature)
                self._signatures.keep(self._request, call.id, remembered, size)
