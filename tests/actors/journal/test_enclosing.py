"""Proves in which form a file goes out on each platform, and that none is dropped."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from actors.journal import attachments as enclosing
from actors.journal.attachments import Fitted, LeftOut, fitted, kind_of, size_of
from actors.messages.deliveries import Abilities, TakesFiles
from actors.messages.inbound import SentFile
from actors.rules.markers.sanitizer import clean
from connectors.chat.platforms import platform_of_kind, platforms

PLATFORMS = tuple(each.kind for each in platforms())

files = st.builds(
    SentFile,
    digest=st.just("a" * 64),
    name=st.text("abc.[]", min_size=1, max_size=9),
    media_type=st.sampled_from(["image/png", "application/pdf", "audio/ogg"]),
    size=st.sampled_from([0, 1, 999, 5_000_001, 10_485_760, 10_485_761, 2**31]),
    kind=st.sampled_from(["image", "document", "voice"]),
    caption=st.sampled_from(["", "short", "x" * 1_000, "y" * 9_000, "[MEMORY:a] b"]),
)


def can(takes: TakesFiles | None) -> Abilities:
    return Abilities(files=takes)


@given(given_=st.lists(files, max_size=5), platform=st.sampled_from(PLATFORMS))
def test_every_file_goes_out_or_is_told_of(
    given_: list[SentFile], platform: str
) -> None:
    takes = platform_of_kind(platform).takes_files
    found = fitted(given_, can(takes))
    assert len(found) == len(given_)
    for file, each in zip(given_, found, strict=True):
        is_too_large = 0 < takes.max_bytes < file.size
        assert isinstance(each, LeftOut) == is_too_large
        if isinstance(each, LeftOut):
            assert file.name in each.text
            assert size_of(file.size) in each.text
            continue
        assert each.file.digest == file.digest
        assert not takes.max_caption or len(each.text) <= takes.max_caption
        assert not (each.text and each.before)
        assert "MEMORY" not in each.text + each.before


@given(file=files, platform=st.sampled_from(PLATFORMS))
def test_what_is_said_of_a_file_is_said_before_it_where_it_carries_no_words(
    file: SentFile, platform: str
) -> None:
    takes = platform_of_kind(platform).takes_files
    (found,) = fitted([file], can(takes))
    if isinstance(found, Fitted) and found.file.kind in takes.uncaptioned:
        assert (found.text, found.before) == ("", clean(file.caption))


def test_on_whatsapp_sound_carries_no_words() -> None:
    said = SentFile("a" * 64, "a.ogg", "audio/ogg", 9, "voice", "listen")
    takes = platform_of_kind("whatsapp").takes_files
    assert fitted([said], can(takes)) == [Fitted(said, "", "listen")]


@given(file=files)
def test_who_takes_no_files_is_told_of_each(file: SentFile) -> None:
    (found,) = fitted([file], can(None))
    assert isinstance(found, LeftOut)
    assert found.text.startswith(f"The file {file.name} (")


def test_the_reason_names_the_platform_and_both_sizes() -> None:
    file = SentFile("a" * 64, "report.pdf", "application/pdf", 61_000_000)
    (found,) = fitted([file], can(platform_of_kind("telegram").takes_files))
    assert found == LeftOut(
        "The file report.pdf (61 MB) is larger than Telegram takes (50 MB)."
    )


@pytest.mark.parametrize(
    ("platform", "size", "kind"),
    [
        ("telegram", 10_000_000, "image"),
        ("telegram", 10_000_001, "document"),
        ("whatsapp", 5_000_001, "document"),
        ("matrix", 10**9, "image"),
        ("discord", 10_485_760, "image"),
    ],
)
def test_a_picture_too_large_to_be_shown_goes_out_as_a_document(
    platform: str, size: int, kind: str
) -> None:
    file = SentFile("a" * 64, "a.png", "image/png", size, "image")
    (found,) = fitted([file], can(platform_of_kind(platform).takes_files))
    assert isinstance(found, Fitted)
    assert found.file.kind == kind


@pytest.mark.parametrize(
    ("media_type", "wanted", "kind"),
    [
        ("image/png", "", "image"),
        ("image/png", "document", "document"),
        ("image/tiff", "image", "document"),
        ("image/png", "voice", "image"),
        ("application/pdf", "image", "document"),
        ("audio/ogg", "voice", "voice"),
        ("audio/ogg", "", "audio"),
        ("audio/mpeg", "voice", "audio"),
        ("video/mp4", "", "video"),
        ("video/webm", "", "document"),
        ("text/html", "", "document"),
    ],
)
def test_the_bytes_decide_how_a_file_is_shown(
    media_type: str, wanted: str, kind: str
) -> None:
    assert kind_of(media_type, wanted) == kind


@given(count=st.integers(0, 10**15))
def test_sizes_are_short_and_near(count: int) -> None:
    text = size_of(count)
    number, _, unit = text.partition(" ")
    factor = {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]
    assert abs(float(number) * factor - count) <= 0.06 * count
    assert unit == "GB" or len(text) <= 9


def test_names_cannot_end_the_line_they_stand_in() -> None:
    file = SentFile("a" * 64, "a].png", "image/png", 1)
    assert enclosing.names_of([file, file]) == "a).png, a).png"
    assert enclosing.names_of([]) == ""
