"""Proves that a stream shows what a whole text shows, and holds little of it back."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import example, given, strategies as st

from actors.rules.markers.line_stage import MOST, MOST_JSON as MOST_OBJECT
from actors.rules.markers.sanitizer import Sanitizer, clean, may_hold_markers
from actors.rules.markers.stage import MOST_FENCED, MOST_WAITING, Block
from actors.rules.markers.tags import LINE_MARKS, ROLE_TAGS

CALL = '{"name": "shell", "arguments": {"cmd": "ls }\\""}}'

lines = st.sampled_from(
    [
        *(f"{mark.name}: a | b | c" for mark in LINE_MARKS),
        "FORGET_CONVERSATION",
        "**PURGE_FACTS**",
        "> SCHEDULE: a | b",
        "- `CANCEL_TASK: 12`",
        "LESSON: fractions",
        "HEARTBEAT_OK",
        "All is well. **no_reply**",
        "HEARTBEAT_OK: all is well",
        "IGNORE",
        "[DONE]",
        "Let me check the weather…",
        "```",
        "```json",
        "~~~",
        CALL,
        '{"name": "x",',
        '"arguments": {}}',
        '{"name": "Bob Hope"}',
        "Hello.",
        "",
    ]
)
pieces = st.sampled_from(
    [
        "[MEMORY:sticky]",
        "[MEMORY: a b]",
        "[/MEMORY]",
        "[STATE:key",
        "[/STATE]",
        "[CREATE_AGENT]",
        "[/CREATE_AGENT]",
        "[DELEGATE:ben]",
        "[/DELEGATE]",
        "[Used tools: a, b]",
        "<tool_result>",
        "</tool_result>",
        "<think>",
        "</think>",
        *ROLE_TAGS[:3],
        "<|im_\u200bstart|>",
        "[sys\u200btem]",
        "<<SYS>>",
        "`",
        "NO_REPLY",
        "[",
        "<",
        " ",
        "\n",
        "\n\n",
        "{",
        "}",
        '"',
        "word",
        "*",
    ]
)
texts = st.lists(
    lines.map(lambda line: line + "\n") | lines | pieces | st.text(max_size=3),
    max_size=14,
).map("".join)


def run(parts: list[str], *, hides_narration: bool = False) -> tuple[str, list[Block]]:
    blocks: list[Block] = []
    sanitizer = Sanitizer(blocks, hides_narration=hides_narration)
    shown = [sanitizer.feed(part) for part in parts]
    return "".join(shown) + sanitizer.finish(), blocks


@pytest.mark.parametrize("hides_narration", [False, True])
@given(text=texts, cuts=st.lists(st.integers(0, 200)))
@example(text="I am done, NO_REPLY ", cuts=[11])  # a piece of a word and a blank
def test_any_split_shows_and_takes_out_the_same(
    text: str, cuts: list[int], *, hides_narration: bool
) -> None:
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    parts = [text[begin:end] for begin, end in pairwise(places)]
    whole = run([text], hides_narration=hides_narration)
    assert run(parts, hides_narration=hides_narration) == whole
    assert run(list(text), hides_narration=hides_narration) == whole


@given(texts)
def test_what_is_taken_out_is_noted_and_nothing_else_is_changed(text: str) -> None:
    shown, blocks = run([text])
    if not blocks:
        # A code block of nothing but a thought leaves no note of its own.
        assert shown == text
    assert all(0 <= block.start <= block.end for block in blocks)


WITHOUT = str.maketrans("", "", "[<{`~_")


@given(texts | texts.map(lambda text: text.translate(WITHOUT)))
def test_nothing_is_taken_out_of_a_text_that_may_hold_no_marker(text: str) -> None:
    assert may_hold_markers(text) or run([text]) == (text, [])


# Written apart from the rule's own patterns, so that one mistake is not in both.
COMPLETE_TAG = re.compile(
    r"\[/?(delegate|memory|state|create_agent|create_cron)[:\]]"
    r"|</?(tool_result|think|invoke)\s*/?>|<\|im_start\|>|\[used tools:",
    re.IGNORECASE | re.ASCII,
)


@given(texts)
def test_what_is_shown_never_holds_a_complete_tag(text: str) -> None:
    assert COMPLETE_TAG.search(clean(text)) is None


@pytest.mark.parametrize(
    "unit",
    [
        "[",
        "<",
        "[MEMORY:",
        "[MEMORY:a]",
        "[CREATE_AGENT",
        "<|im_",
        "<|\u200bim",
        "{",
        '{"name":',
        '{"name":\n',
        '{"name": "x", "arguments": {}}\n',
        "```\n",
        "```",
        "IGNORE\n",
        "SCHEDULE: a",
        "SCHEDULE: a | b\n",
        "NO_REPLY ",
        "** ",
        "\n",
        " ",
        "Let me check it…\n",
        "```\nNO_REPLY\n",
    ],
)
def test_the_work_is_in_proportion_to_the_length(unit: str) -> None:
    """A long text goes through, and what is held stays bounded."""
    text = unit * (200_000 // len(unit))
    sanitizer = Sanitizer(hides_narration=True)
    most = 0
    for begin in range(0, len(text), 1000):
        sanitizer.feed(text[begin : begin + 1000])
        if sanitizer._stages is None:
            most = max(most, len(sanitizer._first))
            continue
        tagged, lines = sanitizer._stages
        kept = len(lines._fence.text) if lines._fence is not None else 0
        held = len(tagged.held) + len(lines._text) + lines._shown._waits
        most = max(most, held + kept + len(sanitizer._first))
    assert most <= max(MOST, MOST_OBJECT, MOST_FENCED) + MOST_WAITING + 1100
    sanitizer.finish()


def test_a_thousand_letters_one_by_one_are_looked_at_a_few_times_each() -> None:
    shown = run(list("HEARTBEAT_INTERVAL: " + "x" * MOST + "\nnext"))[0]
    assert shown == "next"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a <tool_result>secret</tool_result> b", "a b"),
        ("[Used tools: shell, web]\nIt rains.", "It rains."),
        ("a [used TOOLS: x\nb", "a \nb"),
        ("<|im_start|>assistant\nHi", "assistant\nHi"),
        ("<<SYS>>x<</SYS>>", "x"),
        ("a [sys\u200btem] b [system]", "a b [system]"),
        ("a <|\ufeffim_end|> b", "a b"),
        ("[CREATE_AGENT]\nname: x\n[/CREATE_AGENT]\nDone.", "Done."),
        ("Tea! [MEMORY:sticky] likes tea\n\nMore.", "Tea! \n\nMore."),
        ("[MEMORY:a] x\n[MEMORY:b] y [/MEMORY] z", "z"),
        ("RAM [Memory: 16 GB] is fine", "RAM is fine"),
        ("a\n\nSCHEDULE: x | y\n\nb", "a\n\nb"),
        ("Schedule: mine\nLESSON: one\nREWARD: cake", None),
        ("CANCEL_TASK 12", None),
        ("PURGE_FACTS removes all", None),
        ("x SCHEDULE: a | b", None),
        ("[MEMORY", None),
        ("[state]", None),
        ("[user](http://x)", None),
    ],
)
def test_what_people_see(text: str, shown: str | None) -> None:
    assert clean(text) == (text if shown is None else shown.strip())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("HEARTBEAT_OK", ""),
        ("**HEARTBEAT_OK**", ""),
        ("`no_reply`.", ""),
        ("_NO_REPLY_", ""),
        ("> **ANNOUNCE_SKIP**!", ""),
        ("[DONE]", ""),
        ("[done].", ""),
        ("All is quiet. HEARTBEAT_OK", "All is quiet."),
        ("All is quiet.\n\nHEARTBEAT_OK\n", "All is quiet."),
        ("HEARTBEAT_OK: disk is full", "disk is full"),
        ("HEARTBEAT_OK: SCHEDULE: a | b", ""),
        ("IGNORE", ""),
        ("**IGNORE**\n", ""),
        ("IGNORE\nthe first line", "IGNORE\nthe first line"),
        ("ignore", "ignore"),
        ("Press\nIGNORE", "Press\nIGNORE"),
        ("Say NO_REPLY to be silent", "Say NO_REPLY to be silent"),
        ("DONE", "DONE"),
        ("```\nHEARTBEAT_OK\n```", ""),
        ("```\nx\nHEARTBEAT_OK\n```", "```\nx\nHEARTBEAT_OK\n```"),
    ],
)
def test_control_words_go_where_they_are_not_spoken_of(text: str, shown: str) -> None:
    assert clean(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"```json\n{CALL}\n```",
        f"```tool_call\n\n{CALL}\n\n```",
        '{"name": "a", "parameters": {}}',
        '{\n  "name": "a",\n  "input": {"b": [1]}\n}',
        '{"type": "function", "id": "1", "function": {"name": "a", "arguments": "{}"}}',
        '{"tool_calls": [{"name": "a", "arguments": {}}]}',
        '{"name": "shell", "arguments": {"cmd": "l',
    ],
)
def test_a_call_that_stands_alone_is_taken_out(text: str) -> None:
    assert clean(text) == ""
    assert clean(f"One moment.\n{text}") == "One moment."


@pytest.mark.parametrize(
    "text",
    [
        f"So: {CALL}",
        f"{CALL} is how",
        f"[{CALL}]",
        f'{{"call": {CALL}}}',
        f"```json\n{CALL}\nis how\n```",
        '{"name": "Bob Hope", "arguments": {}}',
        '{"name": "a", "arguments": [1]}',
        '{"name": "a", "arguments": {}, "age": 3}',
        '{"name": "a", "arguments": {}, "input": {}}',
        '{"name": "a"}',
        '{"input": {}}',
        '{"name": "a", "arguments": "some words"}',
        '{"name": "a", "arguments": "{some words"}',
        '{"name": "a", "arguments": "some words}"}',
        '{"type": "person", "name": "a", "arguments": {}}',
        '{"type": "person", "function": {"name": "a", "arguments": {}}}',
        '{"id": 5, "name": "a", "arguments": {}}',
        '{"call_id": 5, "name": "a", "arguments": {}}',
        '{"age": 3, "function": {"name": "a", "arguments": {}}}',
        '{"function": {"name": "a"}}',
        '{"tool_calls": [{"name": "a", "arguments": {}}, {"age": 3}]}',
        '{"tool_calls": [{"name": "a", "arguments": {}}], "age": 3}',
        '{"name": 5, "arguments": {}}',
        '{"name": "a"',
        '{"name": "a", ' + '"x": 1, ' * 3000 + '"arguments": {}}',
    ],
)
def test_an_object_that_is_an_answer_stays(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "```md\n# How\nSCHEDULE: a | b\n```",
        "~~~\nx\nNO_REPLY\n~~~",
        "```\n```",
    ],
)
def test_code_is_left_alone(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "```\nSCHEDULE: a | b\n```",
        "```text\n[MEMORY:a] b [/MEMORY]\n```",
        "~~~\n\nNO_REPLY\nLESSON: a | b\n~~~",
        "```\nSCHEDULE: a | b",
    ],
)
def test_a_code_block_of_nothing_but_marks_goes_as_a_whole(text: str) -> None:
    assert clean(text) == ""
