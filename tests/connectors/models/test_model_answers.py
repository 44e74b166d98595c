"""Proves that an answer is the same in every format, however its bytes are cut."""

from __future__ import annotations

import math
from itertools import pairwise

import httpx
import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.errors import ModelBusyError, ModelError, ModelRefusedError
from actors.messages.inbound import (
    ModelAnswer,
    ModelRequest,
    ToolSpec,
    TranscriptLine,
    Usage,
)
from actors.ports import Model
from connectors.models.format import Assembly
from connectors.models.http.client import StreamReading, WholeReading
from connectors.models.provider_errors import ErrorContext
from tests.fakes.models.dialects import MANNERS, Manner
from tests.fakes.models.sayings import JSON, Saying, deaf
from tests.fakes.models.server import FakeProvider, chunked, open_raw_server
from tests.support.tiers import is_deep

CLOCK = ToolSpec("clock", "Tell the time.", b'{"type":"object"}')
REQUEST = ModelRequest(
    model="m",
    agent="anna",
    correlation_id="c",
    system="",
    lines=(TranscriptLine("user", "hello"),),
    tools=(CLOCK,),
)
RECORDED = Saying(
    "Жёлтый 🐈",
    (("clock", '{"x":1}'), ("clock", '{"y":"ü"}')),
    thoughts="Let me think.",
)
PROVIDER = ErrorContext("provider (m)", "")
FEW = 7
"""The first tier cuts an answer at every seventh byte."""

in_all_manners = pytest.mark.parametrize("manner", MANNERS, ids=str)


def cuts(length: int) -> range:
    """Give the places to cut at, the last always; in the second tier all of them."""
    step = 1 if is_deep() else FEW
    return range((length - 1) % step, length, step)


async def ask(
    manner: Manner, *steps: bytes, request: ModelRequest = REQUEST
) -> ModelAnswer:
    """Ask a provider that answers with these bytes and a clean end."""
    provider = FakeProvider.streaming(*steps, media_type=manner.media_type)
    pieces: list[str] = []
    model = manner.make(provider.transport)
    answer = await model.answer(request, pieces.append)
    assert "".join(pieces) == answer.text
    assert provider.open_responses == 0
    return answer


def read(manner: Manner, pieces: list[bytes]) -> ModelAnswer:
    """Read an answer without any HTTP."""
    form = manner.make(httpx.MockTransport(lambda _: httpx.Response(200)))._format
    assembly: Assembly = form.ask(REQUEST, PROVIDER).assembly
    stream = StreamReading(form.framing(), assembly)
    reading = stream if manner.stream else WholeReading(assembly)
    for piece in pieces:
        reading.feed(piece)
    reading.end()
    return assembly.finish("")


@in_all_manners
async def test_words_calls_tokens_and_ids_are_read(manner: Manner) -> None:
    answer = await ask(manner, manner.written(RECORDED))
    assert answer.text == RECORDED.text
    assert [call.name for call in answer.tool_calls] == ["clock", "clock"]
    arguments = [msgspec.json.decode(call.arguments) for call in answer.tool_calls]
    assert arguments == [{"x": 1}, {"y": "ü"}]
    assert len({call.id for call in answer.tool_calls}) == 2
    assert answer.stop_reason == "tools"
    cached = 0 if manner.dialect.name == "ollama" else 3  # it tells of no cache
    assert answer.usage == Usage(7, 5, cached)
    assert answer.request_id == ("" if manner.dialect.name == "ollama" else "x")


@in_all_manners
async def test_thoughts_are_never_said(manner: Manner) -> None:
    answer = await ask(manner, manner.written(Saying("Noon.", thoughts="Hm, hm.")))
    assert answer.text == "Noon."


@in_all_manners
async def test_an_answer_at_its_limit_says_so(manner: Manner) -> None:
    answer = await ask(manner, manner.written(Saying("And th", ending="length")))
    assert (answer.text, answer.stop_reason) == ("And th", "length")


@in_all_manners
async def test_a_call_cut_off_by_the_limit_is_refused(manner: Manner) -> None:
    said = Saying("", (("clock", "{}"),), ending="length")
    with pytest.raises(ModelRefusedError, match="max_tokens") as caught:
        await ask(manner, manner.written(said))
    assert caught.value.kind == "bad_request"


@in_all_manners
async def test_a_limit_before_the_first_word_is_refused(manner: Manner) -> None:
    with pytest.raises(ModelRefusedError, match="before the first word"):
        await ask(manner, manner.written(Saying(ending="length")))


@in_all_manners
async def test_silence_is_no_answer_but_after_a_tool(manner: Manner) -> None:
    silence = manner.written(Saying())
    with pytest.raises(ModelBusyError, match="empty") as caught:
        await ask(manner, silence)
    assert caught.value.kind == "protocol"
    lines = (*REQUEST.lines, TranscriptLine("tool", "done", tool_call_id="a"))
    request = msgspec.structs.replace(REQUEST, lines=lines)
    assert (await ask(manner, silence, request=request)).text == ""


@in_all_manners
async def test_a_tool_that_nobody_offered_is_not_called(manner: Manner) -> None:
    request = msgspec.structs.replace(REQUEST, tools=())
    call = (("clock", "{}"),)
    answer = await ask(manner, manner.written(Saying("Well.", call)), request=request)
    assert (answer.text, answer.tool_calls) == ("Well.", ())
    with pytest.raises(ModelBusyError, match="none was offered"):
        await ask(manner, manner.written(Saying("", call)), request=request)


@in_all_manners
async def test_the_header_names_the_call_where_there_is_one(manner: Manner) -> None:
    names = {"request-id": "r1", "x-request-id": "r1"}
    headers = names | {"content-type": manner.media_type}
    response = httpx.Response(200, content=manner.written(RECORDED), headers=headers)
    provider = FakeProvider.responding(response)
    answer = await manner.make(provider.transport).answer(REQUEST, deaf)
    unnamed = {"google": "x", "ollama": ""}
    assert answer.request_id == unnamed.get(manner.dialect.name, "r1")


@pytest.mark.property
@in_all_manners
async def test_an_answer_cut_at_any_byte_is_an_error(manner: Manner) -> None:
    body = manner.written(RECORDED)
    whole = await ask(manner, body)
    outcomes: list[bool] = []
    kinds: set[str] = set()
    for at in cuts(len(body) + 1):
        try:
            answer = await ask(manner, body[:at])
        except ModelBusyError as error:
            kinds.add(error.kind)
            outcomes.append(False)
        else:
            assert answer == whole
            outcomes.append(True)
    assert outcomes[-1]
    assert kinds == {"protocol"}
    # Only the last line's own end may be missing: the body's stands in for it.
    assert outcomes.count(True) <= 2


@pytest.mark.property
@in_all_manners
async def test_a_response_cut_at_any_byte_is_an_error_or_whole(manner: Manner) -> None:
    body = manner.written(Saying("Ж🐈"))
    response = chunked(body, 120, manner.media_type)
    whole = await ask(manner, body)
    places = cuts(len(response))
    left = iter(places)
    outcomes: list[bool] = []
    kinds: set[str] = set()

    async def ask_through(model: Model) -> None:
        try:
            assert await model.answer(REQUEST, deaf) == whole
            outcomes.append(True)
        except ModelBusyError as error:
            kinds.add(error.kind)
            outcomes.append(False)

    async with open_raw_server(lambda: response[: next(left)], keep_open=False) as raw:
        model = manner.make(base_url=raw.base_url)
        for _ in places:
            await ask_through(model)
        await model.aclose()
    assert outcomes == sorted(outcomes)
    assert kinds == {"network", "protocol"}
    # With an end marker of its own, what HTTP says after it does not matter; without,
    # the answer is whole only when the body is.
    has_marker = manner.stream and manner.dialect.name != "google"
    assert (outcomes.count(True) > 0) is has_marker


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@given(manner=st.sampled_from(MANNERS), text=texts, draw=st.data())
def test_any_split_of_the_bytes_gives_the_same_answer(
    manner: Manner, text: str, draw: st.DataObject
) -> None:
    arguments = msgspec.json.encode({"text": text}).decode()
    body = manner.written(Saying(f"x{text}", (("clock", arguments),)))
    cuts = draw.draw(st.lists(st.integers(0, len(body)), max_size=12).map(sorted))
    edges = [0, *cuts, len(body)]
    answer = read(manner, [body[a:b] for a, b in pairwise(edges)])
    assert answer == read(manner, [body])
    assert answer.text == f"x{text}"
    assert msgspec.json.decode(answer.tool_calls[0].arguments) == {"text": text}


@given(manner=st.sampled_from(MANNERS), body=st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_an_error(manner: Manner, body: bytes) -> None:
    try:
        read(manner, [body])
    except ModelError as error:
        assert len(str(error)) < 400  # noqa: PT017  an error is one of two ways


FIELDS = [
    "type",
    "index",
    "delta",
    "message",
    "content",
    "candidates",
    "parts",
    "error",
    "choices",
    "done",
    "usage",
    "text",
    "id",
    "content_block",
    "tool_calls",
    "functionCall",
    "function",
    "finishReason",
    "stop_reason",
    "item",
    "response",
    "output",
]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(manner=st.sampled_from(MANNERS), events=st.lists(values, max_size=4))
def test_any_json_is_an_answer_or_an_error(
    manner: Manner, events: list[object]
) -> None:
    ends = b"\n" if manner.media_type.endswith("ndjson") else b"\n\n"
    starts = b"" if manner.media_type in {JSON, "application/x-ndjson"} else b"data: "
    written = [starts + msgspec.json.encode(each) + ends for each in events]
    try:
        read(manner, written)
    except ModelError as error:
        assert len(str(error)) < 600  # noqa: PT017  an error is one of two ways


@in_all_manners
async def test_half_a_character_spoils_no_answer(manner: Manner) -> None:
    said = manner.written(Saying("Xx Yy"))
    said = said.replace(b"Xx", b"\\ud83d\\udc08").replace(b"Yy", b"\\ud83d.\\uDC08")
    assert (await ask(manner, said)).text == "🐈 \ufffd.\ufffd"


@in_all_manners
async def test_silence_in_mid_answer_has_a_deadline(
    manner: Manner, autojump_clock: object
) -> None:
    del autojump_clock
    first, *_ = manner.pieces(RECORDED)
    provider = FakeProvider.streaming(first, math.inf, media_type=manner.media_type)
    with pytest.raises(ModelBusyError, match="silent for 60 s") as caught:
        await manner.make(provider.transport).answer(REQUEST, deaf)
    assert caught.value.kind == "timeout"
    assert provider.open_responses == 0
