"""Proves that a model that cannot see is told of pictures in words."""

from __future__ import annotations

from actors.messages.inbound import Image, TranscriptLine
from actors.rules.prompt.estimate import UNSEEN, without_images


def test_marks_of_pictures_are_told_in_words_to_who_cannot_see() -> None:
    line = TranscriptLine("user", "look [IMAGE:a/b.png] and [image: x] [x]")
    assert without_images(line).text == f"look {UNSEEN} and {UNSEEN} [x]"


def test_a_line_without_pictures_is_the_same() -> None:
    line = TranscriptLine("assistant", "[IMAGE] is a word")
    assert without_images(line) is line


def test_a_picture_without_words_is_told_of_alone() -> None:
    line = TranscriptLine("user", "", images=(Image("image/png", b"x"),))
    assert without_images(line) == TranscriptLine("user", UNSEEN)


def test_a_picture_that_has_a_mark_is_told_of_once() -> None:
    picture = Image("image/png", b"x")
    line = TranscriptLine("user", "see\n\n[IMAGE:a.png]", images=(picture,))
    assert without_images(line).text == f"see\n\n{UNSEEN}"


def test_pictures_without_a_mark_are_told_of_besides() -> None:
    picture = Image("image/png", b"x")
    line = TranscriptLine("user", "see [IMAGE:a.png]", images=(picture, picture))
    assert without_images(line).text == f"see {UNSEEN}\n{UNSEEN}"
