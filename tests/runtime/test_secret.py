"""Proves that a secret shows itself to nobody, and that what is none is refused."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from runtime.secret import (
    LARGEST_SECRET_FILE,
    Secret,
    SecretSourceError,
    from_environment,
    from_file,
    is_guessed,
    is_placeholder,
    open_to_others,
)

VALUE = "gold-and-round"


class Holder(msgspec.Struct):
    key: Secret


def test_no_way_of_printing_shows_the_value() -> None:
    secret = Secret(VALUE)
    holder = Holder(secret)
    shown = [str(secret), repr(secret), f"{secret}", f"{secret!r:>40}", f"{secret:>9}"]
    shown += [repr(holder), repr([secret]), "%s %r" % (secret, secret)]  # noqa: UP031
    assert not any(VALUE in each for each in shown)
    assert f"{secret:>6}" == "   ***"


def test_only_reveal_gives_the_value() -> None:
    assert Secret(VALUE).reveal() == VALUE


@pytest.mark.parametrize("encode", [msgspec.json.encode, pickle.dumps, copy.deepcopy])
def test_a_secret_cannot_be_encoded_or_copied(encode: object) -> None:
    assert callable(encode)
    with pytest.raises(TypeError) as caught:
        encode(Holder(Secret(VALUE)))
    assert VALUE not in str(caught.value)


@given(value=st.text(), other=st.text())
def test_secrets_are_equal_when_their_values_are(value: str, other: str) -> None:
    assert (Secret(value) == Secret(other)) is (value == other)
    assert Secret(value).matches(other) is (value == other)
    assert Secret(value) == Secret(value)
    assert hash(Secret(value)) == hash(Secret(value))
    assert Secret(value) != value


@pytest.mark.parametrize(
    "value",
    [
        "change-me",
        "CHANGE_ME",
        "changeme",
        "undefined",
        "null",
        "your-key-here",
        "Your API key here",
        "<your-token>",
        "${YOUR_SECRET}",
        "'password'",
        "xxxxxxxxxxxx",
        "sk-xxxxxxxx",
        "************",
        "........",
    ],
)
def test_what_examples_are_full_of_is_no_secret(value: str) -> None:
    assert is_placeholder(value) or is_guessed(value)
    with pytest.raises(SecretSourceError) as caught:
        from_environment("KEY", {"KEY": value})
    assert value not in str(caught.value)


@pytest.mark.parametrize("value", ["none", "EMPTY", "ollama", "k", "dummy"])
def test_what_somebody_else_checks_may_be_a_word(value: str) -> None:
    given = {"KEY": value}
    assert from_environment("KEY", given, is_given=True) == Secret(value)
    with pytest.raises(SecretSourceError):
        from_environment("KEY", given)


@pytest.mark.parametrize("value", ["", "your-api-key-here", "sk-xxx", "xxxxxxxx"])
def test_what_nobody_has_filled_in_is_no_key_either(value: str) -> None:
    with pytest.raises(SecretSourceError):
        from_environment("KEY", {"KEY": value}, is_given=True)


def test_white_space_around_a_secret_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(f"\n {VALUE}\r\n", encoding="utf-8")
    assert from_file(path) == Secret(VALUE)
    assert from_environment("KEY", {"KEY": f" {VALUE} "}) == Secret(VALUE)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "is empty"),
        (b"\xff\xfe12345678", "is not text in UTF-8"),
        (b"x1" * LARGEST_SECRET_FILE, "is longer than 65536 bytes"),
        (b"abc1234", "is shorter than 8 characters"),
    ],
)
def test_a_file_without_a_secret_is_refused(
    content: bytes, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    with pytest.raises(SecretSourceError, match=expected) as caught:
        from_file(path)
    assert caught.value.hint


def test_a_file_that_is_gone_is_open_to_nobody(tmp_path: Path) -> None:
    assert not open_to_others(tmp_path / "gone")
