"""Proves that secrets and phone numbers are taken out, and little else is."""

from __future__ import annotations

import string
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from actors.rules.text.secrets import MOST_LOGGED, SHOWN, excerpt, redacted

# Put together here, so that no scanner takes this file for a leak.
MIXED = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF"
SECRETS = [
    "sk-" + MIXED,
    "sk-ant-api03-" + MIXED,
    "ghp_" + MIXED,
    "github_pat_" + MIXED,
    "glpat-" + MIXED[:20],
    "xoxb-" + "123456789012-" + MIXED,
    "AIza" + MIXED + "abc",
    "AKIA" + "ABCDEFGHIJ234567",
    "sk_live_" + MIXED,
    "hf_" + MIXED,
    "123456789:" + MIXED + "abc",
    "eyJ" + "hbGciOiJIUzI1" + ".eyJ" + "zdWIiOiIxMjM0" + ".abc_def-ghi",
    MIXED + MIXED,
    "deadbeef" * 5 + "01",
]
PHONES = [
    "+49 151 2345 6789",
    "0049 (0)30 1234567",
    "+1 (555) 010-9999",
    "555-0123-456",
    "030 / 123 45 67",
    "0171 2345678",
    "91 234 56 78",
]
HARMLESS = [
    "Born on 1984-05-17 in Lima",
    "The meeting is on 17.05.2026 at 14:30",
    "Room 1204, third floor, 2 windows",
    "It cost 1.250.000 euros in 2019-2023",
    "The secret is patience",
    "A token of love is worth more",
    "Likes green tea; has 3 cats and 12 plants",
    "https://example.com/a/path/of/some/length/and/more",
    "Version 3.11.7 of Python",
    "El número de la casa es 42",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("around", ["{}", "use {} for it", "({}).", '"{}"', "k={}\n"])
def test_keys_are_taken_out(secret: str, around: str) -> None:
    clean = redacted(around.format(secret))
    assert secret not in clean
    assert MIXED[:12] not in clean


@pytest.mark.parametrize("phone", PHONES)
@pytest.mark.parametrize("around", ["{}", "call {} tomorrow", "tel: {}."])
def test_phone_numbers_are_taken_out(phone: str, around: str) -> None:
    assert redacted(around.format(phone)) == around.format("[phone]")


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redacted(text) == text


@given(
    hashes=st.lists(st.text("0123456789abcdef", min_size=7, max_size=31), min_size=1),
    joint=st.sampled_from([", ", "..", "...", " and ", "\n"]),
    around=st.sampled_from(["{}", "since {}.", "({})", "HEAD is now at {} Mend it"]),
)
def test_a_commit_is_no_phone_number(
    hashes: list[str], joint: str, around: str
) -> None:
    lettered = [each for each in hashes if not each.isdigit()]
    text = around.format(joint.join(lettered))
    assert redacted(text) == text


@given(
    number=st.integers(10**6, 10**12), word=st.sampled_from(["commit", "sha:", "rev"])
)
def test_what_is_called_a_commit_is_none_either(number: int, word: str) -> None:
    text = f"the {word} {number} broke it"
    assert redacted(text) == text


@given(one=st.uuids(), length=st.sampled_from([13, 18, 23, 36]))
def test_a_uuid_is_no_phone_number(one: UUID, length: int) -> None:
    text = f"see {str(one)[:length]}, please"
    clean = redacted(text)
    is_lettered = any(c.isalpha() for c in str(one)[:length])
    assert not is_lettered or "[phone]" not in clean
    assert clean in (text, "see [key], please") or not is_lettered


digits = "0123456789"


@given(
    start=st.sampled_from(["+49 ", "+1 (", "0049 ", "(0", "0", "+34", "+82-"]),
    groups=st.lists(st.text(digits, min_size=3, max_size=4), min_size=3, max_size=3),
    joint=st.sampled_from([" ", "-", " / ", ".", ""]),
    around=st.sampled_from(["{}", "call {} now", "tel: {}.", "{}...9 pm", "({})"]),
)
def test_a_phone_number_goes_in_every_usual_format(
    start: str, groups: list[str], joint: str, around: str
) -> None:
    first = groups[0] + (")" if "(" in start else "")
    text = around.format(start + joint.join((first, *groups[1:])))
    clean = redacted(text)
    assert sum(c.isdigit() for c in clean) <= 1
    assert "[phone]" in clean or "[card]" in clean


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("my password is hunter2", "my password is [password]"),
        ("Passwort: Geheim und lang", "Passwort: [password]"),
        ('{"api_key": "abc def"}', '{"api_key": [password]}'),
        ("la contraseña es abc123", "la contraseña es [password]"),
        ("my pin is 1234", "my pin is [password]"),
        ("token=abcdef and more", "token=[password] and more"),
        ("Bearer abcdefghij", "Bearer [key]"),
        ("postgres://me:geheim@db/x", "postgres://me:[password]@db/x"),
        ("card 4111 1111 1111 1111", "card [card]"),
    ],
)
def test_what_is_called_a_secret_is_taken_out(text: str, clean: str) -> None:
    assert redacted(text) == clean


def test_a_private_key_goes_as_a_whole() -> None:
    head = "-----BEGIN " + "PRIVATE KEY-----"
    tail = "-----END " + "PRIVATE KEY-----"
    assert redacted(f"{head}\nabc\ndef\n{tail} after") == "[key] after"
    assert redacted(f"{head}\nabc") == "[key]"


@given(st.text(max_size=300))
def test_what_is_clean_stays_clean(text: str) -> None:
    once = redacted(text)
    assert redacted(once) == once


@given(st.text(string.ascii_letters + " ,.!?", max_size=31))
def test_short_words_without_digits_stay(text: str) -> None:
    if not any(word in text.lower() for word in ("pass", "senha", "pwd", "parola")):
        assert redacted(text) == text or "bearer" in text.lower()


@pytest.mark.parametrize("secret", SECRETS)
def test_a_log_shows_no_secret_of_what_somebody_wrote(secret: str) -> None:
    for before in range(0, MOST_LOGGED + 1, 50):
        text = f"{'ab ' * (before // 3)}{secret} and so on{' and on' * 200}"
        shown = excerpt(text)
        assert secret[-8:] not in shown
        assert secret not in shown
        assert shown.endswith(f"… (+{len(text) - SHOWN} characters)")


def test_a_log_shows_what_is_no_secret_as_it_is() -> None:
    assert excerpt("what is 12 * 7?") == "what is 12 * 7?"
