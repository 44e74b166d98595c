"""OpenAI's Chat Completions format: requests read, answers written. Pure.

What we do with each field of a request:

    model               the agent that is asked; required
    messages            required; see `read_conversation`
    stream              honoured
    stream_options      `include_usage` honoured
    user                names the conversation kept here (unless the header
                        X-Callboard-Conversation does) and its sender
    n                   1; more is refused: an agent answers once
    tools, functions    refused unless empty: agents have their own tools
    response_format     `text`; others are refused: agents answer in words
    modalities, audio   text; others are refused
    stop                refused unless empty: agents' answers are not cut
    logprobs            refused unless false; `top_logprobs` unless 0
    tool_choice, function_call, parallel_tool_calls
                        ignored: there are no tools they could be about
    temperature, top_p, seed, frequency_penalty, presence_penalty, logit_bias,
    max_tokens, max_completion_tokens, reasoning_effort, verbosity
                        ignored: the agent's settings decide
    metadata, store, service_tier, prediction, safety_identifier,
    prompt_cache_key, web_search_options, and all that is unknown
                        ignored

Token counts are estimates, a quarter of the characters: the runtime's models
count differently, and one answer may come from several of them.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Literal
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import UNSET, Struct, UnsetType

from actors.messages.inbound import Attachment, TranscriptLine, Usage as Tokens
from connectors.web.server import ApiError
from runtime.store.text import why_no_json

DATA_ADDRESS = re.compile(
    r"data:(?P<type>[\w.+-]+/[\w.+-]+)?(?P<parameters>(?:;[\w.+-]+=[\w.+-]+)*)"
    r"(?P<is_base64>;base64)?,",
    re.ASCII | re.IGNORECASE,
)

MOST_URL = 8_192
"""Longest address to fetch, in characters."""


class InputImage(Struct, frozen=True):
    """The address of a picture."""

    url: str


class InputAudio(Struct, frozen=True):
    """A recording."""

    data: str
    format: str = "wav"


class InputFile(Struct, frozen=True):
    """A document."""

    file_data: str | None = None
    filename: str | None = None
    file_id: str | None = None


class ContentPart(Struct, frozen=True):
    """One part of a message's content."""

    type: str
    text: str | None = None
    image_url: InputImage | str | None = None
    input_audio: InputAudio | None = None
    file: InputFile | None = None


class MessageContent(Struct, frozen=True):
    """The text and the attachments of a message."""

    text: str
    attachments: tuple[Attachment, ...] = ()


def read_parts(parts: list[ContentPart], param: str) -> MessageContent:
    """Read the parts of a message.

    Args:
        parts: as the client sent them.
        param: their place in the request, for errors.

    Raises:
        ApiError: 400 for a part of another kind, or with broken content.
    """
    words: list[str] = []
    attachments: list[Attachment] = []
    for number, part in enumerate(parts):
        where = f"{param}.content[{number}]"
        match part:
            case ContentPart(type="text", text=str(text)):
                words.append(text)
            case ContentPart(
                type="image_url", image_url=InputImage(url=url) | str(url)
            ):
                attachments.append(picture(url, f"{where}.image_url"))
            case ContentPart(type="input_audio", input_audio=InputAudio() as audio):
                attachments.append(recording(audio, f"{where}.input_audio.data"))
            case ContentPart(type="file", file=InputFile() as file):
                attachments.append(document(file, f"{where}.file"))
            case _:
                text = f"a part of type {part.type!r} cannot be read as it is"
                hint = "send text, image_url, input_audio or file"
                raise invalid_part(f"{text}; {hint}", where, "unsupported_field")
    return MessageContent("\n".join(words), tuple(attachments))


def picture(url: str, param: str) -> Attachment:
    """Read a picture's address.

    Raises:
        ApiError: 400 for an address that is neither `data:` nor `http(s):`.
    """
    if url[:5].lower() == "data:":
        kind, content = read_data(url, param)
        return Attachment("image", "picture", kind, content=content)
    if not re.match(r"https?://", url, re.IGNORECASE):
        text = "an image_url begins with https://, http:// or data:"
        raise invalid_part(text, param)
    if len(url) > MOST_URL:
        raise invalid_part(f"an address has at most {MOST_URL} characters", param)
    return Attachment("image", "picture", "", url=url)


def recording(audio: InputAudio, param: str) -> Attachment:
    """Read a recording.

    Raises:
        ApiError: 400 if it is not base64.
    """
    content = read_base64(audio.data, param)
    name = re.sub(r"[^a-z0-9]", "", audio.format.lower())[:8] or "wav"
    return Attachment("audio", f"recording.{name}", f"audio/{name}", content=content)


def document(file: InputFile, param: str) -> Attachment:
    """Read a document.

    Raises:
        ApiError: 400 if it has no content, or is not base64.
    """
    if file.file_data is None:
        text = "a file is sent as file_data; there is no store of files here"
        raise invalid_part(text, param, "unsupported_field")
    if file.file_data[:5].lower() == "data:":
        kind, content = read_data(file.file_data, f"{param}.file_data")
    else:
        kind, content = "", read_base64(file.file_data, f"{param}.file_data")
    return Attachment("document", file.filename or "document", kind, content=content)


def read_data(url: str, param: str) -> tuple[str, bytes]:
    """Give media type and content of a `data:` address (RFC 2397).

    Raises:
        ApiError: 400 for another address.
    """
    found = DATA_ADDRESS.match(url)
    if found is None:
        raise invalid_part(
            "this is no data: address, as in data:image/png;base64,…", param
        )
    rest = url[found.end() :]
    if found["is_base64"]:
        return found["type"] or "", read_base64(rest, param)
    return found["type"] or "", unquote_to_bytes(rest)


def read_base64(text: str, param: str) -> bytes:
    """Decode base64; blanks and line ends are skipped.

    Raises:
        ApiError: 400 for anything else.
    """
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid_part("this is not valid base64", param) from error


def in_words(content: MessageContent) -> str:
    """Give the text of an earlier message, and names in place of its attachments."""
    marks = (f"[{each.kind.capitalize()}: {each.name}]" for each in content.attachments)
    return "\n".join(part for part in (content.text, *marks) if part)


def invalid_part(text: str, param: str, code: str = "invalid_field") -> ApiError:
    """Make the error for a part that cannot be accepted."""
    return ApiError(400, text, code=code, param=param)


NOTHING = (b"null", b"[]", b"{}", b"false", b"0", b'""')
"""What clients write into a field that they do not use."""

CLIENT_INSTRUCTIONS = (
    "[The program this person uses sent these instructions; they are not the "
    "operator's.]\n"
)
"""Put before a client's system message, which becomes a user line: only the persona has
the authority of the system."""

MOST_NAME = 64
"""Longest name of a speaker, in characters; longer ones are cut."""


class ChatStreamOptions(Struct, frozen=True):
    """Options of a stream."""

    include_usage: bool | None = None


class ResponseFormat(Struct, frozen=True):
    """The form of answer that the client wants."""

    type: str


class ChatMessage(Struct, frozen=True):
    """One message of the conversation, as the client sends it."""

    role: str
    content: str | list[ContentPart] | None = None
    name: str | None = None
    tool_calls: msgspec.Raw = msgspec.Raw(b"null")
    function_call: msgspec.Raw = msgspec.Raw(b"null")


class ChatRequest(Struct, frozen=True):
    """The body of `POST /v1/chat/completions`; unknown fields are tolerated."""

    model: str
    messages: list[ChatMessage]
    stream: bool | None = None
    stream_options: ChatStreamOptions | None = None
    user: str | None = None
    n: int | None = None
    response_format: ResponseFormat | None = None
    modalities: list[str] | None = None
    tools: msgspec.Raw = msgspec.Raw(b"null")
    functions: msgspec.Raw = msgspec.Raw(b"null")
    audio: msgspec.Raw = msgspec.Raw(b"null")
    stop: msgspec.Raw = msgspec.Raw(b"null")
    logprobs: msgspec.Raw = msgspec.Raw(b"null")
    top_logprobs: msgspec.Raw = msgspec.Raw(b"null")


class ClientConversation(Struct, frozen=True):
    """The client's messages: the newest text, and the history before it."""

    text: str
    history: tuple[TranscriptLine, ...]
    attachments: tuple[Attachment, ...] = ()


class CompletionUsage(Struct, frozen=True):
    """Estimated token counts."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class AssistantMessage(Struct, frozen=True):
    """The answer inside a completion."""

    content: str
    role: str = "assistant"
    refusal: None = None


class CompletionChoice(Struct, frozen=True):
    """The only choice of a completion."""

    message: AssistantMessage
    index: int = 0
    finish_reason: str = "stop"
    logprobs: None = None


class Completion(Struct, frozen=True):
    """The body of an answer that is not streamed."""

    id: str
    created: int
    model: str
    choices: tuple[CompletionChoice, ...]
    usage: CompletionUsage
    object: str = "chat.completion"
    system_fingerprint: None = None


class ChunkDelta(Struct, frozen=True):
    """The text that a chunk adds."""

    role: str | UnsetType = UNSET
    content: str | UnsetType = UNSET


class ChunkChoice(Struct, frozen=True):
    """The only choice of a chunk."""

    delta: ChunkDelta
    index: int = 0
    finish_reason: Literal["stop"] | None = None
    logprobs: None = None


class CompletionChunk(Struct, frozen=True):
    """One event of a stream."""

    id: str
    created: int
    model: str
    choices: tuple[ChunkChoice, ...]
    usage: CompletionUsage | UnsetType | None = UNSET
    object: str = "chat.completion.chunk"
    system_fingerprint: None = None


class AgentModel(Struct, frozen=True):
    """One agent, as a list of models shows it."""

    id: str
    created: int
    object: str = "model"
    owned_by: str = "callboard"


class AgentModelList(Struct, frozen=True):
    """The body of `GET /v1/models`."""

    data: tuple[AgentModel, ...]
    object: str = "list"


def decode_request(body: bytes) -> ChatRequest:
    """Read a request, and refuse fields that cannot be honoured.

    Raises:
        ApiError: 400, with `param` if one field is wrong.
    """
    try:
        request = msgspec.json.decode(body, type=ChatRequest)
    except msgspec.ValidationError as error:
        raise ApiError(
            400, str(error), code="invalid_field", param=field_at_fault(str(error))
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = why_no_json(body, error)
        raise ApiError(
            400, f"the body is not valid JSON: {why}", code="invalid_json"
        ) from None
    check_fields(request)
    return request


def field_at_fault(text: str) -> str | None:
    """Find the field that an error text of msgspec is about.

    Its two forms are "… - at `$.messages[0].role`" and "Object missing required
    field `role` - at `$.messages[0]`".
    """
    path = re.search(r"at `\$\.?([^`]*)`$", text)
    missing = re.search(r"missing required field `([^`]*)`", text)
    names = [found.group(1) for found in (path, missing) if found and found.group(1)]
    return ".".join(names) or None


def check_fields(request: ChatRequest) -> None:
    """Refuse features that we cannot honour; the module's table says which.

    Raises:
        ApiError: 400, `unsupported_field`.
    """
    reasons = {
        "tools": (request.tools, "agents use their own tools"),
        "functions": (request.functions, "agents use their own tools"),
        "audio": (request.audio, "agents answer in words"),
        "stop": (request.stop, "agents' answers are not cut"),
        "logprobs": (request.logprobs, "agents have no log probabilities"),
        "top_logprobs": (request.top_logprobs, "agents have no log probabilities"),
    }
    for name, (value, reason) in reasons.items():
        if bytes(value) not in NOTHING:
            raise unsupported(name, reason)
    if request.n not in (None, 1):
        raise unsupported("n", "an agent answers once; send n = 1 or leave it out")
    form = request.response_format
    if form is not None and form.type != "text":
        raise unsupported("response_format", "agents answer in words")
    if any(kind != "text" for kind in request.modalities or ()):
        raise unsupported("modalities", "agents answer in words")


def unsupported(param: str, reason: str) -> ApiError:
    """Make the error for a feature that we cannot honour."""
    return ApiError(
        400,
        f"{param} is not supported here: {reason}",
        code="unsupported_field",
        param=param,
    )


def read_conversation(request: ChatRequest) -> ClientConversation:
    """Take the last user message as the text, the others as history.

    System and developer messages come from the client, not from the operator: they
    become user lines that say so. Blank messages are left out.

    Raises:
        ApiError: 400: no user message, an assistant message after the last one,
            unreadable content, tools, or an unknown role.
    """
    lines = [read_message(m, f"messages[{i}]") for i, m in enumerate(request.messages)]
    asked = [i for i, message in enumerate(request.messages) if message.role == "user"]
    if not asked:
        text = "messages holds no message with role 'user'"
        raise ApiError(400, text, code="invalid_field", param="messages")
    last = asked[-1]
    for i, line in enumerate(lines[last:], last):
        if line.role == "assistant":
            text = "the last message must be the user's: answers cannot be begun"
            raise ApiError(400, text, code="invalid_field", param=f"messages[{i}]")
    lines.pop(last)
    newest = read_content(request.messages[last].content, f"messages[{last}]")
    if not (newest.text.strip() or newest.attachments):
        text = "the last message of the user is empty"
        raise ApiError(
            400, text, code="invalid_field", param=f"messages[{last}].content"
        )
    history = tuple(line for line in lines if line.text.strip())
    return ClientConversation(newest.text, history, newest.attachments)


def read_message(message: ChatMessage, param: str) -> TranscriptLine:
    """Turn one message into a line of a transcript.

    Raises:
        ApiError: 400 for content that cannot be read, tools, or an unknown role.
    """
    if bytes(message.tool_calls) not in NOTHING:
        raise unsupported(f"{param}.tool_calls", "agents use their own tools")
    if bytes(message.function_call) not in NOTHING:
        raise unsupported(f"{param}.function_call", "agents use their own tools")
    text = without_bytes(in_words(read_content(message.content, param)))
    name = re.sub(r"[\x00-\x1f\x7f]+", " ", message.name or "").strip()[:MOST_NAME]
    match message.role:
        case "user":
            return TranscriptLine("user", text, name)
        case "assistant":
            return TranscriptLine("assistant", text, name)
        case "system" | "developer":
            return TranscriptLine(
                "user", CLIENT_INSTRUCTIONS + text if text else "", name
            )
        case "tool" | "function":
            raise unsupported(f"{param}.role", "agents use their own tools")
        case _:
            text = f"role {message.role!r} is not system, developer, user, assistant"
            raise ApiError(400, text, code="invalid_field", param=f"{param}.role")


def read_content(content: str | list[ContentPart] | None, param: str) -> MessageContent:
    """Give the text and the attachments of a message.

    Raises:
        ApiError: 400 for a part that cannot be taken.
    """
    if isinstance(content, list):
        return read_parts(content, param)
    return MessageContent(content or "")


def usage_of(request: ChatRequest, answer: str, told: Tokens) -> CompletionUsage:
    """Give the tokens that the models reported; else a quarter of the characters."""
    if told != Tokens():
        read, written = told.input_tokens, told.output_tokens
        return CompletionUsage(read, written, read + written)
    asked = sum(
        len(read_content(message.content, "messages").text)
        for message in request.messages
    )
    prompt, completion = -(-asked // 4), -(-len(answer) // 4)
    return CompletionUsage(prompt, completion, prompt + completion)


def encode_event(body: Struct) -> bytes:
    """Write one server-sent event."""
    return b"data: " + msgspec.json.encode(body) + b"\n\n"


STREAM_END = b"data: [DONE]\n\n"
"""The last event of a complete stream."""

HEARTBEAT = b": still here\n\n"
"""A comment that keeps the connection open; clients skip it."""


_INLINED = re.compile(r"\(data:[a-z]+/[a-z0-9.+-]+;base64,[A-Za-z0-9+/=]*\)")


BEFORE = "(sent before)"


def without_bytes(text: str) -> str:
    """Remove the bytes of files that a program sends back with earlier answers."""
    return _INLINED.sub(BEFORE, text) if "(data:" in text else text
