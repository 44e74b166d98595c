"""Proves that a lesson is added under its heading, once, and nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from actors.memory.notebook import (
    HEADING,
    LONGEST_LESSON,
    MOST_LESSONS,
    add,
    read_lesson,
)

HEAD = "---\nname: pdf\ndescription: x\n---\n"
ROOMY = 100_000

# What a file may hold, lines that look like ours among it.
lines = st.sampled_from(
    ["", " ", "text", "- item", HEADING, "# Title", "## Next", "### Sub", "---", "\x85"]
)
ends = st.sampled_from(["\n", "\r\n"])
bodies = st.tuples(st.lists(lines, max_size=12), ends, st.booleans())
words = st.text(max_size=80).map(read_lesson).filter(bool)


def file_of(body: tuple[list[str], str, bool]) -> str:
    inside, end, has_end = body
    return HEAD.replace("\n", end) + end.join(inside) + (end if has_end else "")


@given(bodies, words)
def test_all_that_was_there_stays_in_its_order(
    body: tuple[list[str], str, bool], lesson: str
) -> None:
    before = file_of(body)
    left = iter(add(before, lesson, ROOMY).text.split("\n"))
    assert all(
        any(x.rstrip() == line.rstrip() for x in left) for line in before.split("\n")
    )


@given(bodies, words)
def test_a_second_time_changes_nothing(
    body: tuple[list[str], str, bool], lesson: str
) -> None:
    once = add(file_of(body), lesson, ROOMY)
    twice = add(once.text, lesson, ROOMY)
    assert (once.why, twice.why, twice.text) == ("", "", once.text)
    assert f"- {lesson}" in [line.rstrip() for line in once.text.split("\n")]


@given(bodies, st.lists(words, min_size=2, max_size=5, unique=True))
def test_lessons_stand_together_in_their_order(
    body: tuple[list[str], str, bool], lessons: list[str]
) -> None:
    text = file_of(body)
    for lesson in lessons:
        text = add(text, lesson, ROOMY).text
    assert text.count(HEADING) >= 1
    items = [line.rstrip() for line in text.split("\n")]
    new = [f"- {each}" for each in lessons if f"- {each}" != "- item"]
    places = [items.index(each) for each in new]
    assert places == sorted(places)
    assert places == list(range(places[0], places[0] + len(places)))


def test_the_heading_comes_with_the_first_lesson() -> None:
    first = add(HEAD + "Do this.\n", "Ask first.", ROOMY).text
    assert first == f"{HEAD}Do this.\n\n{HEADING}\n\n- Ask first.\n"
    assert add(first, "Be kind.", ROOMY).text == f"{first}- Be kind.\n"


def test_a_heading_of_the_author_is_used_and_what_follows_stays_behind() -> None:
    before = f"{HEAD}{HEADING}\n\n- One.\n\n## Next\n\ntext"
    after = add(before, "Two.", ROOMY).text
    assert after == f"{HEAD}{HEADING}\n\n- One.\n- Two.\n\n## Next\n\ntext\n"


def test_a_heading_in_code_is_an_example() -> None:
    before = f"{HEAD}```\n{HEADING}\n```\n"
    assert add(before, "One.", ROOMY).text == f"{before}\n{HEADING}\n\n- One.\n"


@pytest.mark.parametrize(
    ("text", "lesson", "most"),
    [
        (HEAD, "", ROOMY),
        (HEAD, "x" * (LONGEST_LESSON + 1), ROOMY),
        ("no head", "One.", ROOMY),
        ("---\nname: pdf\n", "One.", ROOMY),
        ("", "One.", ROOMY),
        (f"{HEAD}```\ncode", "One.", ROOMY),
        (f"{HEAD}Do this.", "One.", 20),
        (
            f"{HEAD}{HEADING}\n" + "".join(f"- {n}\n" for n in range(MOST_LESSONS)),
            "One.",
            ROOMY,
        ),
    ],
)
def test_what_cannot_be_added_is_told_and_changes_nothing(
    text: str, lesson: str, most: int
) -> None:
    added = add(text, lesson, most)
    assert added.why
    assert added.text == text


@given(st.text(max_size=2_000))
def test_a_lesson_is_one_line_that_can_be_seen(text: str) -> None:
    lesson = read_lesson(text)
    assert len(lesson) <= LONGEST_LESSON + 1
    assert len(f"- {lesson}".splitlines()) == 1
