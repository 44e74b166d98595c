"""Proves that a program that prints events, as Codex does, answers as a model."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.errors import ModelBusyError, ModelError, ModelFault, ModelRefusedError
from actors.messages.inbound import ModelAnswer, ModelRequest, TranscriptLine, Usage
from connectors.models.program import (
    CliModel,
    ProgramPlace,
    ProgramSession,
    read_output,
)
from connectors.settings.load import load_app
from tests.fakes.models import events_program
from tests.fakes.tools.sandbox import FakeSandbox
from tests.house.settings.test_config_files import CONFIG, SECRETS

PROGRAM = Path(events_program.__file__).resolve()
ONE_TURN = Usage(events_program.READ, events_program.WRITTEN, events_program.CACHED)
HISTORY = (TranscriptLine("user", "first"), TranscriptLine("assistant", "yes"))


@pytest.fixture
def model(tmp_path: Path) -> CliModel:
    """Call the program as the example file calls Codex."""
    main = load_app(CONFIG / "codex.toml", SECRETS).value.models["main"]
    command = (sys.executable, str(PROGRAM))
    config = msgspec.structs.replace(main, command=command, timeout=30.0)
    ground = ProgramPlace(FakeSandbox(), tmp_path, pauses=(0.0,) * 5)
    return CliModel(config, ground)  # type: ignore[arg-type]


async def ask(model: CliModel, text: str, resume: str = "") -> ModelAnswer:
    request = ModelRequest(
        model="gpt-5",
        agent="anna",
        correlation_id="c",
        system="Be brief.",
        lines=(*HISTORY, TranscriptLine("user", text)),
        conversation="anna/http/room",
        resume=resume,
    )
    return await model.answer(request, lambda _: None)


async def test_its_last_message_is_the_answer(model: CliModel) -> None:
    assert (await ask(model, "say hello there")).text == "hello there"
    assert (await ask(model, "think and then speak")).text == "and then speak"


async def test_a_session_that_goes_on_is_told_only_the_newest_words(
    model: CliModel,
) -> None:
    first = await ask(model, "recall")
    again = await ask(model, "recall", first.resume)
    anew = await ask(model, "recall", "thread-gone 10 3 4")
    assert [each.text for each in (first, again, anew)] == ["True", "False", "True"]


async def test_each_answer_counts_what_it_took_though_the_program_tells_the_sum(
    model: CliModel,
) -> None:
    resume = ""
    for _ in range(3):
        answer = await ask(model, "say x", resume)
        assert answer.usage == ONE_TURN
        resume = answer.resume
    with pytest.raises(ModelError, match="without a word") as caught:
        await ask(model, "silent", resume)
    assert Usage(*caught.value.tokens) == ONE_TURN + ONE_TURN  # a new session, too


@pytest.mark.parametrize(
    ("words", "kind", "error"),
    [
        ("fail unexpected status 401 Unauthorized: x", "auth", ModelRefusedError),
        ("fail You've hit your usage limit.", "quota", ModelRefusedError),
        ("fail exceeded retry limit, last status: 429", "rate", ModelBusyError),
        ("fail out of room in the context window", "context", ModelRefusedError),
        ("fail unexpected status 503: busy", "overload", ModelBusyError),
        ("fail something odd, request id: req-4029c", "protocol", ModelBusyError),
        ("crash connection refused", "network", ModelBusyError),
    ],
)
async def test_what_goes_wrong_has_a_kind(
    model: CliModel, words: str, kind: ModelFault, error: type[ModelError]
) -> None:
    with pytest.raises(error) as caught:
        await ask(model, words)
    assert caught.value.kind == kind


def test_a_session_of_before_is_read_as_one_that_has_taken_nothing() -> None:
    for text in ("abc", "abc x y z", "abc -1 2 3", "abc 1 2"):
        assert ProgramSession.read(text) == ProgramSession("abc")
    kept = ProgramSession("abc", Usage(3, 2, 1))
    assert ProgramSession.read(str(kept)) == kept
    assert ProgramSession.read("") == ProgramSession()


EVENTS = st.fixed_dictionaries(
    {"type": st.sampled_from(["thread.started", "turn.completed", "turn.failed"])},
    optional={
        "thread_id": st.none() | st.text(max_size=3),
        "usage": st.none() | st.dictionaries(st.text(max_size=3), st.integers()),
        "error": st.none() | st.text(max_size=3),
    },
)


@given(st.lists(EVENTS | st.integers() | st.none(), max_size=5))
def test_any_lines_are_an_output_or_none(lines: list[object]) -> None:
    said = b"\n".join(map(msgspec.json.encode, lines))
    output = read_output(said)
    assert output is None or output.type == "result"
