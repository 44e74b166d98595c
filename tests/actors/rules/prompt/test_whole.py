"""Proves that a whole request keeps within the window, and what gives way for that."""

from __future__ import annotations

from hypothesis import given, strategies as st

from actors.config.prompt import ContextConfig
from actors.messages.inbound import ModelRequest, ToolSpec, TranscriptLine
from actors.rules.prompt import build as prompt
from actors.rules.prompt.brief import Brief, Memories, PersonaFiles, PromptMemory
from actors.rules.prompt.estimate import estimate
from actors.rules.prompt.transcript import turn_starts
from actors.rules.prompt.window import Whole, fitted, most_tokens

CONTEXT = ContextConfig(window_tokens=1_000, reserve_tokens=200)
ROOM = prompt.tokens_for(CONTEXT, 0)
MOST = most_tokens(CONTEXT)

sizes = st.integers(0, 900)
turns = st.lists(st.tuples(sizes, sizes), max_size=8)


def line(role: str, number: int, size: int) -> TranscriptLine:
    text = f"{number} " + "x" * size
    return TranscriptLine("user" if role == "user" else "assistant", text)


def brief_of(soul: int, facts: int, skills: int) -> Brief:
    relevant = tuple(
        PromptMemory(f"fact {number} " + "y" * 40) for number in range(facts)
    )
    return Brief(
        name="anna",
        context=CONTEXT,
        files=PersonaFiles(soul="s" * soul),
        standing=("k" * skills,) if skills else (),
        memories=Memories(
            sticky=(PromptMemory("allergic to nuts"),), relevant=relevant
        ),
    )


def request_of(pairs: list[tuple[int, int]], question: int) -> ModelRequest:
    lines = [
        each
        for number, (asked, said) in enumerate(pairs)
        for each in (line("user", number, asked), line("assistant", number, said))
    ]
    return ModelRequest(
        model="",
        agent="anna",
        correlation_id="",
        system="",
        lines=(*lines, line("user", 99, question)),
        tools=(ToolSpec("clock", "tells the time", b"{}"),),
    )


def tokens_of(whole: Whole) -> int:
    return whole.prompt.tokens + whole.others


briefs = st.builds(brief_of, st.integers(1, 400), st.integers(0, 6), sizes)


@given(brief=briefs, pairs=turns, question=sizes)
def test_the_sum_is_within_the_window_or_nothing_more_may_go(
    brief: Brief, pairs: list[tuple[int, int]], question: int
) -> None:
    request = request_of(pairs, question)
    whole = fitted(brief, request, len(request.lines))
    least = prompt.build(brief, 0).tokens
    if tokens_of(whole) > MOST:
        assert len(whole.request.lines) == 1
    if tokens_of(whole) > ROOM:
        assert whole.prompt.tokens == least
    kept = whole.request.lines
    assert kept == request.lines[whole.cut :]
    assert kept[-1] == request.lines[-1]
    assert whole.cut in turn_starts(request.lines)
    assert "allergic to nuts" in whole.prompt.text
    assert brief.files.soul in whole.prompt.text


@given(brief=briefs, pairs=turns, question=sizes)
def test_no_more_history_goes_than_must(
    brief: Brief, pairs: list[tuple[int, int]], question: int
) -> None:
    request = request_of(pairs, question)
    whole = fitted(brief, request, len(request.lines))
    before = estimate(request).input_tokens
    assert whole.cut_tokens == before - whole.others
    if not whole.cut:
        return
    earlier = [x for x in turn_starts(request.lines) if x < whole.cut][-1]
    more = ModelRequest(
        model="",
        agent="anna",
        correlation_id="",
        system="",
        lines=request.lines[earlier:],
        tools=request.tools,
    )
    assert prompt.build(brief, 0).tokens + estimate(more).input_tokens > MOST


@given(added=st.lists(sizes, min_size=1, max_size=3))
def test_what_the_turn_has_added_stays(added: list[int]) -> None:
    request = request_of([(900, 900)] * 3, 10)
    new = tuple(line("assistant", 100 + n, size) for n, size in enumerate(added))
    longer = ModelRequest(
        model="",
        agent="anna",
        correlation_id="",
        system="",
        lines=(*request.lines, *new),
        tools=request.tools,
    )
    whole = fitted(brief_of(40, 2, 40), longer, len(request.lines))
    assert whole.request.lines[-len(new) - 1 :] == (request.lines[-1], *new)
    assert whole.cut


def test_the_model_is_told_how_much_is_not_shown() -> None:
    request = request_of([(900, 900)] * 3, 10)
    whole = fitted(brief_of(40, 0, 0), request, len(request.lines))
    assert whole.cut
    assert f"[… {whole.cut} earlier messages are not shown]" in whole.prompt.text
