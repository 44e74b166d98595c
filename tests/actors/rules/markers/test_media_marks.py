"""Proves which lines of an answer send files: whole lines, of models, not in code."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from actors.rules.markers import tags
from actors.rules.markers.actions import SendFile
from actors.rules.markers.parser import parse
from actors.rules.markers.sanitizer import Sanitizer
from actors.rules.prompt.texts import MEDIA_MARKS


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("[IMAGE:a.png]", SendFile("a.png", "image")),
        ("  - **[IMAGE: charts/a b.png | The sales]**", None),
        ("[DOCUMENT:a.pdf]", SendFile("a.pdf", "document")),
        ("[VOICE:a.ogg|hi|ho]", SendFile("a.ogg", "voice", "hi|ho")),
        ("[FILE:a.zip].", SendFile("a.zip", "")),
    ],
)
def test_a_mark_alone_in_its_line_sends_a_file(
    line: str, wanted: SendFile | None
) -> None:
    wanted = wanted or SendFile("charts/a b.png", "image", "The sales")
    parsed = parse(f"Look:\n{line}\nThere.", "assistant")
    assert parsed.actions == (wanted,)
    assert parsed.visible == "Look:\nThere."


@pytest.mark.parametrize(
    "text",
    [
        "[Image: a.png]",
        "[image:a.png]",
        "It is in [IMAGE:a.png] there",
        "[IMAGE: a\n.png]",
        "[IMAGES:a.png]",
        "[IMAGE]",
        "[IMAGE:a[1].png]",
        "```python\nx = 1\n[IMAGE:a.png]\n```",
    ],
)
def test_what_only_looks_like_one_stays(text: str) -> None:
    parsed = parse(text, "assistant")
    assert (parsed.actions, parsed.visible) == ((), text)


@pytest.mark.parametrize("text", ["`[IMAGE:a.png]`", "> [IMAGE:a.png]", "[IMAGE: ]"])
def test_an_example_or_an_empty_one_sends_nothing(text: str) -> None:
    parsed = parse(text, "assistant")
    assert (parsed.actions, parsed.visible) == ((), "")
    assert parsed.dropped[0].reason in {"quoted", "empty"}


def test_words_of_people_and_tools_send_nothing() -> None:
    assert parse("[IMAGE:a.png]", "user").actions == ()
    assert parse("[IMAGE:a.png]", "tool").actions == ()
    assert parse(tags.defuse("[IMAGE:a.png]"), "assistant").actions == ()
    assert tags.defuse("[Image: photo.png]") == "[Image: photo.png]"


def test_what_models_are_told_is_read() -> None:
    for mark in ("[IMAGE:path | caption]", "[DOCUMENT:path]", "[VOICE:path]"):
        assert mark in MEDIA_MARKS
        (action,) = parse(mark, "assistant").actions
        assert isinstance(action, SendFile)
        assert action.path == "path"


@given(
    st.lists(st.sampled_from(["[", "IMAGE", ":", "a.png", "]", "\n", " ", "x"])),
    st.integers(1, 5),
)
def test_streamed_in_any_pieces_it_shows_the_same(parts: list[str], step: int) -> None:
    text = "".join(parts)
    sanitizer = Sanitizer()
    shown = "".join(
        sanitizer.feed(text[at : at + step]) for at in range(0, len(text), step)
    )
    shown += sanitizer.finish()
    parsed = parse(text, "assistant")
    assert shown.strip() == parsed.visible.strip()
