"""Proves that a shown history is whole turns, the newest kept, roles alternating."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from actors.messages.inbound import Image, ToolCall, TranscriptLine
from actors.rules.prompt.transcript import (
    LOST,
    flat,
    merge,
    prepare,
    repair,
    told_of,
    trim,
    turn_starts,
    used_tools,
    window,
    with_used_tools,
    without_stale,
)
from tests.support.hangs import computed_within


def user(text: str = "u", name: str = "") -> TranscriptLine:
    return TranscriptLine("user", text, name)


def agent(text: str = "a") -> TranscriptLine:
    return TranscriptLine("assistant", text)


def calling(*ids: str) -> TranscriptLine:
    calls = tuple(ToolCall(each, "clock", b"{}") for each in ids)
    return TranscriptLine("assistant", "", tool_calls=calls)


def result(call_id: str) -> TranscriptLine:
    return TranscriptLine("tool", "r", tool_call_id=call_id)


ids = st.sampled_from("abc")
lines = st.lists(
    st.one_of(
        st.builds(user, st.text(max_size=2), st.sampled_from(["", "Uma", "Vic"])),
        st.builds(agent, st.text(max_size=2)),
        st.lists(ids, min_size=1, max_size=2).map(lambda each: calling(*each)),
        st.builds(result, ids),
    ),
    max_size=20,
)


def parted(whole: list[TranscriptLine], kept: tuple[TranscriptLine, ...]) -> set[str]:
    """Ids of results kept whose call was cut off."""
    cut = len(whole) - len(kept)
    caller: dict[str, int] = {}
    lost: set[str] = set()
    for index, line in enumerate(whole):
        caller |= {call.id: index for call in line.tool_calls}
        if line.role == "tool" and caller.get(line.tool_call_id, index) < cut <= index:
            lost.add(line.tool_call_id)
    return lost


@given(lines, st.integers(0, 20))
def test_the_newest_lines_are_kept_and_calls_stay_with_their_results(
    whole: list[TranscriptLine], most: int
) -> None:
    kept = trim(whole, most)
    assert list(kept) == whole[len(whole) - len(kept) :]
    assert parted(whole, kept) == set()


@given(lines, st.integers(0, 20))
def test_only_the_newest_turn_may_exceed_the_limit(
    whole: list[TranscriptLine], most: int
) -> None:
    kept = trim(whole, most)
    newest = len(whole) - turn_starts(whole)[-1]
    assert len(kept) <= max(most, newest)
    assert len(kept) >= newest


@given(lines, st.integers(0, 20))
def test_nothing_is_cut_that_would_have_fitted(
    whole: list[TranscriptLine], most: int
) -> None:
    kept = trim(whole, most)
    longer = [len(whole) - start for start in turn_starts(whole)]
    assert not [each for each in longer if len(kept) < each <= most]
    assert len(kept) == len(whole) or kept[0].role == "user"


@given(lines)
def test_people_and_plain_answers_alternate_after_merging(
    whole: list[TranscriptLine],
) -> None:
    merged = merge(whole)
    for one, two in pairwise(merged):
        is_plain = not (one.tool_calls or two.tool_calls)
        assert not (is_plain and one.role == two.role != "tool")
        assert not one.role == two.role == "user"


@given(lines)
def test_merging_loses_no_words_and_is_done_once(whole: list[TranscriptLine]) -> None:
    merged = merge(whole)
    assert merge(merged) == merged
    assert [line for line in merged if line.tool_calls or line.role == "tool"] == [
        line for line in whole if line.tool_calls or line.role == "tool"
    ]
    words = "\n\n".join(line.text for line in merged)
    place = 0
    for line in whole:
        place = words.index(line.text, place) + len(line.text)


def test_words_of_one_person_are_joined_under_their_name() -> None:
    assert merge([user("a", "Uma"), user("b", "Uma")]) == (user("a\n\nb", "Uma"),)


def test_words_of_several_people_keep_their_names() -> None:
    spoken = [user("a", "Uma"), user("b", "Vic"), user("c")]
    assert merge(spoken) == (user("Uma: a\n\nVic: b\n\nc"),)


def test_a_call_is_not_joined_to_the_words_before_it() -> None:
    spoken = (agent("wait"), calling("a"), result("a"), agent("x"))
    assert merge(spoken) == spoken


def test_whole_turns_are_dropped() -> None:
    old = [user("1"), calling("a"), result("a"), agent("x")]
    new = [user("2"), agent("y")]
    assert trim(old + new, 5) == tuple(new)
    assert trim(old + new, 6) == tuple(old + new)


def test_the_newest_turn_stays_whole() -> None:
    turn = [user("2"), calling("a", "b"), result("b"), result("a"), agent("y")]
    assert trim([user("1"), agent("x"), *turn], 2) == tuple(turn)


def test_words_put_between_a_call_and_its_result_start_no_turn() -> None:
    turn = [user("1"), calling("a"), user("quick!"), result("a"), agent("x")]
    assert turn_starts(turn) == [0]
    assert turn_starts([*turn, user("2")]) == [0, 5]


def test_all_turns_that_began_between_a_call_and_its_result_are_one() -> None:
    between = [calling("a"), user("stop"), user("wait"), result("a"), user("now")]
    with computed_within(2.0):
        assert turn_starts([user(), *between]) == [0, 5]
        assert turn_starts(between) == [0, 4]
        assert turn_starts([*between, result("a")]) == [0]


def test_a_call_never_answered_does_not_hold_the_history() -> None:
    assert turn_starts([user("1"), calling("a"), user("2")]) == [0, 2]


@pytest.mark.parametrize("most", [0, 10])
def test_an_empty_history_stays_empty(most: int) -> None:
    assert prepare([], most) == ()


def test_an_orphan_question_is_merged_before_trimming() -> None:
    spoken = [user("0"), agent("x"), user("stopped"), user("again")]
    assert prepare(spoken, 1) == (user("stopped\n\nagain"),)


def is_sound(transcript: tuple[TranscriptLine, ...]) -> bool:
    """Whether a provider takes it: each call's results stand right behind it."""
    expected: list[str] = []
    known: set[str] = set()
    for line in transcript:
        if line.role == "tool":
            if not expected or expected.pop(0) != line.tool_call_id:
                return False
            continue
        new = [call.id for call in line.tool_calls]
        if expected or known.intersection(new) or len(set(new)) < len(new):
            return False
        known.update(new)
        expected = new
    return not expected


@given(lines)
def test_every_call_has_its_result_behind_it_after_repair(
    whole: list[TranscriptLine],
) -> None:
    repaired = repair(whole)
    assert is_sound(repaired)
    assert repair(repaired) == repaired


@given(lines)
def test_what_is_sound_is_not_touched(whole: list[TranscriptLine]) -> None:
    if is_sound(tuple(whole)):
        assert repair(whole) == tuple(whole)


@given(lines)
def test_repair_loses_no_words_of_people_and_agents(
    whole: list[TranscriptLine],
) -> None:
    def words(transcript: list[TranscriptLine]) -> list[str]:
        return [line.text for line in transcript if line.role != "tool" and line.text]

    assert words(list(repair(whole))) == words(whole)


@given(lines, st.integers(0, 20))
def test_what_a_model_is_shown_of_any_past_is_sound(
    whole: list[TranscriptLine], most: int
) -> None:
    assert is_sound(prepare(whole, most))


def test_orphans_are_repaired_and_not_refused() -> None:
    spoken = (result("x"), user(), calling("a", "b"), user("stop"), result("b"))
    lost = TranscriptLine("tool", LOST, tool_call_id="a")
    assert repair(spoken) == (
        user(), calling("a", "b"), lost, result("b"), user("stop")
    )  # fmt: skip


def test_pictures_stay_with_the_words_they_are_joined_with() -> None:
    cat, dog = Image("image/png", b"cat"), Image("image/png", b"dog")
    spoken = [
        TranscriptLine("user", "a", images=(cat,)),
        TranscriptLine("user", "b", images=(dog,)),
    ]
    assert merge(spoken) == (TranscriptLine("user", "a\n\nb", images=(cat, dog)),)


# --- what is left of tools in old lines ---------------------------------------------


def test_stale_results_are_left_out_of_old_lines() -> None:
    old = (
        TranscriptLine("user", "hi <tool_result id='1'>\n42\n</tool_result>there"),
        TranscriptLine("assistant", "<TOOL_RESULT>x</TOOL_RESULT>\n"),
        TranscriptLine("assistant", "fine <tool_result> never closed"),
    )
    kept = without_stale(old)
    assert [line.text for line in kept] == [
        "hi there",
        "fine <tool_result> never closed",
    ]


def test_lines_without_such_results_are_the_same() -> None:
    lines = (
        TranscriptLine("user", "a <b> c"),
        TranscriptLine("tool", "<tool_result>", tool_call_id="1"),
    )
    assert without_stale(lines) == lines


def test_a_transcript_can_be_told_as_one_text() -> None:
    lines = (TranscriptLine("user", "hi"), TranscriptLine("assistant", "hello"))
    assert flat(lines) == "[user]: hi\n[assistant]: hello"


def test_used_tools_are_named_once_in_order() -> None:
    calls = tuple(ToolCall(str(n), name, b"{}") for n, name in enumerate("bab"))
    used = used_tools(
        (TranscriptLine("assistant", "", tool_calls=calls), TranscriptLine("user", "x"))
    )
    assert used == ("b", "a")
    assert with_used_tools("so", used) == "[Used tools: b, a]\nso"
    assert with_used_tools("so", ()) == "so"


@given(
    st.lists(
        st.builds(
            TranscriptLine, st.sampled_from(("user", "assistant")), st.text(max_size=30)
        ),
        min_size=1,
        max_size=40,
    ),
    st.integers(1, 20),
    st.integers(0, 300),
)
def test_a_window_is_whole_turns_within_its_bounds(
    lines: list[TranscriptLine], most: int, chars: int
) -> None:
    found = window(lines, most, chars)
    assert found.lines == merge(lines[found.left_out :])
    assert found.left_out in turn_starts(lines)
    size = sum(len(line.text) for line in lines[found.left_out :])
    is_newest = found.left_out == turn_starts(lines)[-1]
    assert is_newest or (size <= chars and len(found.lines) <= most)
    earlier = [each for each in turn_starts(lines) if each < found.left_out]
    if earlier:
        rest = lines[earlier[-1] :]
        too_long = sum(len(line.text) for line in rest) > chars
        assert too_long or len(merge(rest)) > most


def test_what_is_left_out_is_said() -> None:
    assert told_of(0) == ()
    assert told_of(1) == ("[… 1 earlier message is not shown]",)
    assert told_of(7) == ("[… 7 earlier messages are not shown]",)
