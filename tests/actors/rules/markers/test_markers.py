"""Proves that markers never reach people, and that only whole ones are carried out."""

from __future__ import annotations

import gc
import re
from itertools import pairwise

import pytest
from hypothesis import example, given, strategies as st

from actors.messages.inbound import Role
from actors.rules.markers import tag_stage
from actors.rules.markers.actions import Delegation
from actors.rules.markers.parser import (
    MAX_DELEGATIONS,
    MAX_REPORTED,
    DroppedMarker,
    ParsedAnswer,
    parse,
)
from actors.rules.markers.sanitizer import Sanitizer
from actors.rules.markers.stage import Block
from actors.rules.markers.tags import LINES

# Written apart from the rule's own patterns, so that one mistake is not in both.
COMPLETE_MARKER = re.compile(
    r"\[delegate:|\[/delegate\]"
    r"|</?(tool_call|toolcall|tool-call|invoke)\s*/?>"
    r"|<(tool_call|toolcall|tool-call|invoke)\s",
    re.IGNORECASE | re.ASCII,
)

pieces = st.sampled_from(
    [
        "[DELEGATE:",
        "[delegate:ben]",
        "[Delegate: a_b-2 ]",
        "[/DELEGATE]",
        "[/delegate",
        "[DELE",
        "GATE:ben]",
        "[",
        "]",
        "/",
        "<tool_call>",
        "</tool_call>",
        "<invoke",
        ' name="x">',
        "</invoke>",
        "<toolcall/>",
        "<tool-call",
        "<",
        ">",
        " ",
        "\n",
        "\n\n",
        "task",
        "\N{LATIN SMALL LETTER LONG S}",
        "\N{LATIN SMALL LETTER DOTLESS I}",
        "<invo\N{KELVIN SIGN}e",
    ]
)
texts = st.lists(pieces | st.text(max_size=3), max_size=25).map("".join)


def clean(text: str, blocks: list[Block] | None = None) -> str:
    sanitizer = Sanitizer(blocks)
    return sanitizer.feed(text) + sanitizer.finish()


def visible(text: str) -> str:
    return parse(text, "assistant").visible


def reasons(text: str) -> list[str]:
    return [each.reason for each in parse(text, "assistant").dropped]


def tag_held(sanitizer: Sanitizer) -> int:
    """Count the characters that may still become a tag."""
    return len(sanitizer._stages[0].held) if sanitizer._stages else 0


@given(texts, st.lists(st.integers(0, 60)))
def test_any_split_of_a_text_shows_and_takes_out_the_same(
    text: str, cuts: list[int]
) -> None:
    whole: list[Block] = []
    expected = clean(text, whole)
    blocks: list[Block] = []
    sanitizer = Sanitizer(blocks)
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    shown = [sanitizer.feed(text[begin:end]) for begin, end in pairwise(places)]
    assert "".join(shown) + sanitizer.finish() == expected
    assert blocks == whole


@given(texts)
@example("a <invoke/>b")
@example("a <invoke x/ y/>b</invoke>c")
@example("a\n [/DELEGATE] \nb")
@example("a[DELEGATE:b]c[/DELEGATE]d")
def test_one_letter_at_a_time_shows_the_same_and_holds_little_back(text: str) -> None:
    sanitizer = Sanitizer()
    shown = ""
    for letter in text:
        shown += sanitizer.feed(letter)
        assert tag_held(sanitizer) <= 51
    assert shown + sanitizer.finish() == clean(text)


@given(texts)
def test_what_is_shown_never_holds_a_complete_marker(text: str) -> None:
    assert COMPLETE_MARKER.search(clean(text)) is None


@given(texts)
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(texts)
def test_a_stream_shows_what_parsing_shows(text: str) -> None:
    parsed = parse(text, "assistant")
    if parsed.delegations or parsed.dropped:
        assert parsed.visible == clean(text).strip()
    else:
        assert parsed.visible == clean(text) == text


def is_unmarked(text: str) -> bool:
    """Whether a text holds nothing of which a mark is made, of any family."""
    return not any(part in text for part in ("[", "<", "{", "_", "IGNORE", *LINES))


@given(st.text().filter(is_unmarked))
def test_a_text_without_marks_passes_unchanged(text: str) -> None:
    assert clean(text) == text
    assert parse(text, "assistant") == ParsedAnswer(text)


@given(st.text(alphabet="bdeg ,.", max_size=50))
def test_words_that_begin_no_mark_are_shown_at_once(text: str) -> None:
    sanitizer = Sanitizer()
    assert sanitizer.feed("Well, ") + sanitizer.feed(text + "e") == f"Well, {text}e"


@given(texts, st.sampled_from(list[Role](["user", "tool"])))
def test_only_model_text_holds_markers(text: str, role: Role) -> None:
    assert parse(text, role) == ParsedAnswer(text)


@given(texts)
def test_reports_are_bounded_and_complete(text: str) -> None:
    parsed = parse(text, "assistant")
    assert len(parsed.delegations) <= MAX_DELEGATIONS
    assert min(parsed.dropped_total, MAX_REPORTED) <= len(parsed.dropped)
    assert len(parsed.dropped) <= parsed.dropped_total


def test_a_delegation_is_found_and_taken_out() -> None:
    text = "I will ask. [DELEGATE:Ben] sum up\nthe talk [/delegate] One moment."
    assert parse(text, "assistant") == ParsedAnswer(
        "I will ask. One moment.", (Delegation("ben", "sum up\nthe talk"),)
    )


def test_blanks_around_a_name_do_no_harm() -> None:
    parsed = parse("[DELEGATE: a_b-2 ]do[/DELEGATE]", "assistant")
    assert parsed.delegations == (Delegation("a_b-2", "do"),)


@pytest.mark.parametrize(
    ("text", "reason", "shown"),
    [
        ("a [DELEGATE:ben] do it", "unclosed", "a"),
        ("a [DELEGATE:ben] x [DELEGATE:c] y [/DELEGATE] z", "unclosed", "a"),
        ("a [DELEGATE:b] [DELEGATE:c] y [/DELEGATE] [/DELEGATE] z", "nested", "a z"),
        ("a [DELEGATE:b n] x [/DELEGATE] z", "bad_name", "a z"),
        ("a [DELEGATE:] x [/DELEGATE] z", "bad_name", "a z"),
        ("a [DELEGATE:ben[/DELEGATE] z", "bad_name", "a z"),
        ("a [DELEGATE:ben] \n [/DELEGATE] z", "no_task", "a \n z"),
        ("a [/DELEGATE] z", "stray_end", "a z"),
        ("a </tool_call> z", "stray_end", "a z"),
        ("a <tool_call>{}</tool_call> z", "tool_call", "a z"),
        ("a <TOOL-call>{}</tool-CALL> z", "tool_call", "a z"),
        ("a <toolcall>{} z", "tool_call", "a"),
        ("<think>hm, z?</think> a z", "thinking", "a z"),
        ("a <Thinking>x</THINKING> z", "thinking", "a z"),
        ("a <think>hm", "thinking", "a"),
        ("a <think>[DELEGATE:b]x[/DELEGATE]</think> z", "thinking", "a z"),
        ("a <think>use <br/> here</think> z", "thinking", "a z"),
        ("a <think x='y'>m/> [DELEGATE:b]x[/DELEGATE]</think> z", "thinking", "a z"),
        ('a <tool_call>{"x": "<br/>"}</tool_call> z', "tool_call", "a z"),
        ("hm </think> z", "stray_end", "hm z"),
        ("a <function_calls><invoke>x</invoke></function_calls> z", "tool_call", "a z"),
        ("a <tool_call{}</tool_call> z", "tool_call", "a z"),
        ('a <invoke name="x">1 > 0</invoke> z', "tool_call", "a z"),
        ('a <invoke name="x"/> z', "tool_call", "a z"),
        ("a <tool_call>[DELEGATE:b]x[/DELEGATE]</tool_call> z", "tool_call", "a z"),
    ],
)
def test_what_is_not_a_whole_delegation_is_hidden_and_reported(
    text: str, reason: str, shown: str
) -> None:
    parsed = parse(text, "assistant")
    assert parsed.delegations == ()
    assert reasons(text) == [reason]
    assert re.sub(r"\s+", " ", parsed.visible) == re.sub(r"\s+", " ", shown)


MODES = [each for each in gc.get_objects() if isinstance(each, tag_stage._Mode)]


@given(st.lists(pieces, max_size=6).map("".join), st.integers(0, 20))
def test_the_quick_search_for_a_tag_finds_what_the_whole_one_does(
    text: str, at: int
) -> None:
    assert len(MODES) > 10
    for mode in MODES:
        found, wanted = mode.search(text, at), mode.tokens.search(text, at)
        assert (found and found.span()) == (wanted and wanted.span())


@pytest.mark.parametrize(
    "text",
    ["a [DELEGATE", "a [/DELEGATE", "a <tool_call", "[delegated]", "<invoker>", "<b>"],
)
def test_what_only_looks_like_a_marker_is_shown(text: str) -> None:
    assert parse(text, "assistant") == ParsedAnswer(text)


@pytest.mark.parametrize(
    "text",
    [
        "[DELE[/DELEGATE]GATE:ben] x [/DELEGATE]",
        "<invoke[/DELEGATE]>x",
        "<tool_<invoke/>call>x</tool_call>",
    ],
)
def test_taking_out_one_marker_never_makes_another(text: str) -> None:
    assert COMPLETE_MARKER.search(clean(text)) is None
    assert parse(text, "assistant").delegations == ()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("  #  b", "  b"),
        ("# \n b", "b"),
        ("a#b", "a b"),
        ("a# b", "a b"),
        ("a # b", "a b"),
        ("a #\n\nb", "a \n\nb"),
        ("a\n\n#\n\nb", "a\n\nb"),
        ("a\n #\nb", "a\n b"),
        ("a\n# #b", "a\nb"),
        ("a## #b", "a b"),
        ("a #  ", "a "),
    ],
)
def test_blanks_around_a_marker_are_tidied(text: str, shown: str) -> None:
    assert clean(text.replace("#", "[/DELEGATE]")) == shown


def test_a_report_goes_to_the_end_of_a_text_that_was_cut_off() -> None:
    text = "a [DELEGATE:ben] x [/DELEG"
    assert parse(text, "assistant").dropped == (
        DroppedMarker("unclosed", text[2:], "DELEGATE"),
    )


def test_a_report_quotes_the_beginning_of_what_was_dropped() -> None:
    text = "a [DELEGATE:ben] " + "x" * 200
    assert parse(text, "assistant").dropped == (
        DroppedMarker("unclosed", text[2:82], "DELEGATE"),
    )


def test_too_many_delegations_are_reported() -> None:
    one = "[DELEGATE:ben]x[/DELEGATE]"
    parsed = parse(one * (MAX_DELEGATIONS + MAX_REPORTED + 5), "assistant")
    assert len(parsed.delegations) == MAX_DELEGATIONS
    assert len(parsed.dropped) == MAX_REPORTED
    assert parsed.dropped_total == MAX_REPORTED + 5
    assert "may hold 8 delegations" in parsed.notice


def test_a_reason_is_reported_even_after_many_others() -> None:
    text = "[/DELEGATE]" * 50 + "[DELEGATE:ben] x"
    parsed = parse(text, "assistant")
    assert [each.reason for each in parsed.dropped][-1] == "unclosed"
    assert parsed.notice == (
        "A delegation was not passed on: it was not closed with [/DELEGATE]."
    )


@pytest.mark.parametrize(
    ("text", "is_silent"),
    [
        ("", True),
        (" \n", True),
        (" <tool_call>{}</tool_call> ", True),
        ("[/DELEGATE]", True),
        ("word", False),
        ("[DELEGATE:ben]x[/DELEGATE]", False),
        ("[DELEGATE:ben]x", False),
    ],
)
def test_an_answer_is_silent_if_nothing_comes_of_it(
    text: str, *, is_silent: bool
) -> None:
    assert parse(text, "assistant").is_silent is is_silent


@pytest.mark.parametrize(
    "unit",
    ["[", "<", "[DELEGATE:", "[DELEGATE:a]x[/DELEGATE]", "</invoke>", "<invoke ", " "],
)
def test_a_million_letters_are_read_in_one_pass(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    sanitizer = Sanitizer()
    most_held = 0
    for begin in range(0, len(text), 1000):
        sanitizer.feed(text[begin : begin + 1000])
        most_held = max(most_held, tag_held(sanitizer))
    assert most_held <= 51
    assert len(visible(text)) <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        "<b>HEARTBEAT_OK</b>",
        '<code class="x">HEARTBEAT_OK</code>',
        "**HEARTBEAT\\_OK**",
        "Heartbeat OK",
        "\u201cHEARTBEAT_OK\u201d",
        "\u201eHEARTBEAT_OK\u201c",
        "\xabHEARTBEAT_OK\xbb",
        "HEARTBEAT_OK \u2705",
        "HEARTBEAT_OK\U0001f44d",
        "\u2705HEARTBEAT_OK",
        "| HEARTBEAT_OK |",
        "{HEARTBEAT_OK}",
        '{"reply": "HEARTBEAT_OK"}',
        "<HEARTBEAT_OK/>",
        "[HEARTBEAT_OK](x)",
        "\ufeffHEARTBEAT_OK",
        "HEARTBEAT_\u200bOK",
        "\uff28\uff25\uff21\uff32\uff34\uff22\uff25\uff21\uff34\uff3f\uff2f\uff2b",
        "HEARTBEAT_OK\u3002",
        "HEARTBEAT_OK (all quiet)",
        "HEARTBEAT_OK</s>",
        "Nothing new.\n\\[HEARTBEAT_OK\\]",
        "The answer is: <strong>HEARTBEAT_OK</strong>",
    ],
)
def test_all_is_well_says_nothing_in_whatever_clothes(text: str) -> None:
    assert parse(text, "assistant").says_nothing(300), ascii(text)


@pytest.mark.parametrize(
    "text",
    [
        "Heartbeat OK check of db1 failed: no answer.",
        "I cannot say HEARTBEAT_OK since the oven is on fire.",
        "HEARTBEAT_OK2 is a file that nobody knows.",
        "HEARTBEAT_OKAY?",
    ],
)
def test_what_is_about_all_is_well_is_said(text: str) -> None:
    assert not parse(text, "assistant").says_nothing(300)


def test_few_words_beside_all_is_well_say_nothing() -> None:
    few = parse("All is well.\nHEARTBEAT_OK", "assistant")
    assert not few.is_withheld
    assert few.says_nothing(12)
    assert not few.says_nothing(11)
    assert parse("**HEARTBEAT_OK**", "assistant").says_nothing(0)
    assert not parse("Well.\nNO_REPLY", "assistant").says_nothing(300)
    assert not parse("All is well.", "assistant").says_nothing(300)
    marked = parse("SCHEDULE: tea | in 5 minutes | none\nHEARTBEAT_OK", "assistant")
    assert not marked.says_nothing(300), "what it asks for is not passed over"
