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

import re
from typing import Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from actors.messages import Attachment, Line
from actors.messages import Usage as Tokens
from connectors.web.errors import ApiError
from connectors.web.inlining import without_bytes
from connectors.web.openai_parts import Content, Part, in_words, read_parts
from runtime.texts import why_no_json

NOTHING = (b"null", b"[]", b"{}", b"false", b"0", b'""')
"""How clients write a field that they do not use."""

CLIENT_INSTRUCTIONS = (
    "[The program this person uses sent these instructions; they are not the "
    "operator's.]\n"
)
"""Put before a client's system message, which becomes a line of the person: only
the persona speaks with the system's authority."""

MOST_NAME = 64
"""Longest name of a speaker, in characters; the rest is cut off."""


class StreamOptions(Struct, frozen=True):
    """How a stream is written."""

    include_usage: bool | None = None


class ResponseFormat(Struct, frozen=True):
    """In which form the client wants the answer."""

    type: str


class Message(Struct, frozen=True):
    """One message of the conversation as the client tells it."""

    role: str
    content: str | list[Part] | None = None
    name: str | None = None
    tool_calls: msgspec.Raw = msgspec.Raw(b"null")
    function_call: msgspec.Raw = msgspec.Raw(b"null")


class ChatRequest(Struct, frozen=True):
    """The body of `POST /v1/chat/completions`; unknown fields are tolerated."""

    model: str
    messages: list[Message]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
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


class Conversation(Struct, frozen=True):
    """What the client's messages say: the newest words and what went before."""

    text: str
    history: tuple[Line, ...]
    attachments: tuple[Attachment, ...] = ()


class Usage(Struct, frozen=True):
    """Estimated token counts."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class AssistantMessage(Struct, frozen=True):
    """The answer inside a completion."""

    content: str
    role: str = "assistant"
    refusal: None = None


class Choice(Struct, frozen=True):
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
    choices: tuple[Choice, ...]
    usage: Usage
    object: str = "chat.completion"
    system_fingerprint: None = None


class Delta(Struct, frozen=True):
    """What a chunk adds."""

    role: str | UnsetType = UNSET
    content: str | UnsetType = UNSET


class ChunkChoice(Struct, frozen=True):
    """The only choice of a chunk."""

    delta: Delta
    index: int = 0
    finish_reason: Literal["stop"] | None = None
    logprobs: None = None


class Chunk(Struct, frozen=True):
    """One event of a stream."""

    id: str
    created: int
    model: str
    choices: tuple[ChunkChoice, ...]
    usage: Usage | UnsetType | None = UNSET
    object: str = "chat.completion.chunk"
    system_fingerprint: None = None


class Model(Struct, frozen=True):
    """One agent, as a list of models shows it."""

    id: str
    created: int
    object: str = "model"
    owned_by: str = "callboard"


class ModelList(Struct, frozen=True):
    """The body of `GET /v1/models`."""

    data: tuple[Model, ...]
    object: str = "list"


def decode_request(body: bytes) -> ChatRequest:
    """Read a request and refuse what cannot be honoured.

    Raises:
        ApiError: 400, with `param` where a field is to blame.
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
    """Find the field that one of msgspec's messages is about.

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


def read_conversation(request: ChatRequest) -> Conversation:
    """Take the last message of the user as the text, the others as history.

    System and developer messages come from the client, not from the operator:
    they become lines of the user that say so. Blank messages are left out.

    Raises:
        ApiError: 400 for no message of the user, one after which the assistant
            speaks, content that cannot be read, tools, an unknown role.
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
    return Conversation(newest.text, history, newest.attachments)


def read_message(message: Message, param: str) -> Line:
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
            return Line("user", text, name)
        case "assistant":
            return Line("assistant", text, name)
        case "system" | "developer":
            return Line("user", CLIENT_INSTRUCTIONS + text if text else "", name)
        case "tool" | "function":
            raise unsupported(f"{param}.role", "agents use their own tools")
        case _:
            text = f"role {message.role!r} is not system, developer, user, assistant"
            raise ApiError(400, text, code="invalid_field", param=f"{param}.role")


def read_content(content: str | list[Part] | None, param: str) -> Content:
    """Give what a message says and brings along.

    Raises:
        ApiError: 400 for a part that cannot be taken.
    """
    if isinstance(content, list):
        return read_parts(content, param)
    return Content(content or "")


def usage_of(request: ChatRequest, answer: str, told: Tokens) -> Usage:
    """Give the tokens that the models told of; else a quarter of the characters."""
    if told != Tokens():
        read, written = told.input_tokens, told.output_tokens
        return Usage(read, written, read + written)
    asked = sum(
        len(read_content(message.content, "messages").text)
        for message in request.messages
    )
    prompt, completion = -(-asked // 4), -(-len(answer) // 4)
    return Usage(prompt, completion, prompt + completion)


def encode_event(body: Struct) -> bytes:
    """Write one server-sent event."""
    return b"data: " + msgspec.json.encode(body) + b"\n\n"


STREAM_END = b"data: [DONE]\n\n"
"""The event that ends every whole stream."""

HEARTBEAT = b": still here\n\n"
"""A comment: keeps the connection open, and clients skip it."""
