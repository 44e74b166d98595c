"""Proves that only whoever has the key is believed, once and while it is fresh."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from actors.webhooks.signature import (
    Rejected,
    Scheme,
    Signed,
    key_of,
    sign,
    sign_github,
    verify,
)
from tests.fakes.web.webhooks import (
    BODY,
    KEY,
    KEYS,
    NOW,
    OLD_KEY,
    SECRET,
    signed,
    signed_by_github,
)

WRONG = Rejected("bad_signature")
OTHER_KEY = b"somebody else's key"


def judge(
    headers: dict[str, str],
    body: bytes = BODY,
    scheme: Scheme = "standard",
    now: float = NOW,
) -> Signed | Rejected:
    return verify(scheme, KEYS, headers, body, now=now, window=300)


def changed(**headers: str) -> dict[str, str]:
    """Give good headers, some of which are others or, empty, are not there."""
    named = {f"webhook-{name}": value for name, value in headers.items()}
    return {name: value for name, value in (signed() | named).items() if value}


def raw(algorithm: str, version: str = "v1") -> str:
    """Sign rightly, but by another algorithm."""
    content = f"d1.{NOW}.".encode() + BODY
    digest = hmac.new(KEY, content, algorithm).digest()
    return f"{version},{base64.b64encode(digest).decode()}"


def test_it_signs_as_the_reference_library_does() -> None:
    # Source: made with `standardwebhooks` of PyPI, by the key of the specification.
    name, body = "msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}'
    wanted = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert sign(key_of(SECRET), name, 1_614_265_330, body) == wanted
    umlauts = '{"type":"x","text":"grüße"}'.encode()
    wanted = "v1,wgm2CTcW1Uvbn7IBYLX0VtcX3uW7jp9s3hIcTH0bW3k="
    assert sign(key_of(SECRET), "d1", 1_700_000_000, umlauts) == wanted


def test_it_signs_as_github_documents() -> None:
    wanted = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    key = key_of("It's a Secret to Everybody")
    assert sign_github(key, b"Hello, World!") == f"sha256={wanted}"


@given(
    body=st.binary(max_size=300),
    name=st.text(st.sampled_from("abcXYZ019-_:~"), min_size=1, max_size=128),
    off=st.integers(-300, 300),
    key=st.sampled_from(KEYS),
)
def test_what_was_signed_is_believed_within_the_window(
    body: bytes, name: str, off: int, key: bytes
) -> None:
    headers = signed(body, key=key, name=name, at=NOW + off)
    assert judge(headers, body) == Signed(key=name, delivery=name)


@given(body=st.binary(min_size=1, max_size=100), at=st.data())
def test_no_bit_of_the_body_can_be_changed(body: bytes, at: st.DataObject) -> None:
    place = at.draw(st.integers(0, len(body) * 8 - 1))
    other = bytearray(body)
    other[place // 8] ^= 1 << place % 8
    assert judge(signed(body), bytes(other)) == WRONG
    github = signed_by_github(body)
    assert judge(github, bytes(other), "github") == WRONG
    assert isinstance(judge(github, body, "github"), Signed)


NEGATIVES = {
    "no header": {"content-type": "application/json"},
    "no id": changed(id=""),
    "no time": changed(timestamp=""),
    "no signature": changed(signature=""),
    "another id": changed(id="d2"),
    "another time": changed(timestamp=str(NOW + 1)),
    "a blank signature": changed(signature=" "),
    "a signature of nothing": changed(signature="v1,"),
    "no base64": changed(signature="v1,ü"),
    "half a signature": changed(signature=signed()["webhook-signature"][:20]),
    "no version": changed(signature=raw("sha256").removeprefix("v1,")),
    "another version": changed(signature=raw("sha256", "v2")),
    "asymmetric": changed(signature=raw("sha256", "v1a")),
    "sha1": changed(signature=raw("sha1")),
    "sha512": changed(signature=raw("sha512")),
    "md5": changed(signature=raw("md5")),
    "plain hash": changed(
        signature="v1," + base64.b64encode(hashlib.sha256(BODY).digest()).decode()
    ),
    "another's key": signed(key=OTHER_KEY),
    "an empty key": signed(key=b""),
    "the secret as it is written": signed(key=SECRET.encode()),
    "too late among many": changed(
        signature=" ".join(["v1,AAAA"] * 8 + [signed()["webhook-signature"]])
    ),
    "an id with a full stop": signed(name="d1.x"),
    "an id with a blank": signed(name="d 1"),
    "a long id": signed(name="d" * 129),
    "github's instead": signed_by_github(),
    "a time with a fraction": signed() | {"webhook-timestamp": f"{NOW}.0"},
    "a time with a sign": signed() | {"webhook-timestamp": f"+{NOW}"},
    "a time in other digits": signed() | {"webhook-timestamp": "١٧٠٠٠٠٠٠٠٠"},
}


@pytest.mark.parametrize("headers", NEGATIVES.values(), ids=NEGATIVES.keys())
def test_anything_else_is_a_wrong_signature(headers: dict[str, str]) -> None:
    assert judge(headers) == WRONG


@given(
    given=st.dictionaries(
        st.sampled_from([*signed(), *signed_by_github(), "authorization"]),
        st.one_of(
            st.text(max_size=80),
            st.sampled_from([*signed().values(), *signed_by_github().values()]),
            st.binary(max_size=40).map(lambda raw: f"v1,{base64.b64encode(raw)!r}"),
            st.binary(max_size=40).map(lambda raw: f"sha256={raw.hex()}"),
        ),
    ),
    body=st.binary(max_size=60).filter(lambda body: body != BODY),
)
def test_no_made_up_headers_make_another_body_believed(
    given: dict[str, str], body: bytes
) -> None:
    assert judge(given, body) == WRONG
    assert judge(given, body, "github") == WRONG


GITHUB_NEGATIVES = {
    "no header": {},
    "sha1": {"x-hub-signature": "sha1=" + hmac.new(KEY, BODY, "sha1").hexdigest()},
    "sha1 in its place": {
        "x-hub-signature-256": "sha1=" + hmac.new(KEY, BODY, "sha1").hexdigest()
    },
    "no algorithm": {"x-hub-signature-256": sign_github(KEY, BODY)[7:]},
    "no hex": {"x-hub-signature-256": "sha256=zz"},
    "blank": {"x-hub-signature-256": ""},
    "nothing": {"x-hub-signature-256": "sha256="},
    "another's key": signed_by_github(key=OTHER_KEY),
    "the standard one": signed(),
}


@pytest.mark.parametrize(
    "headers", GITHUB_NEGATIVES.values(), ids=GITHUB_NEGATIVES.keys()
)
def test_of_github_anything_else_is_a_wrong_signature(headers: dict[str, str]) -> None:
    assert judge(headers, scheme="github") == WRONG


def test_what_is_old_or_yet_to_come_is_told_only_to_who_has_the_key() -> None:
    assert judge(signed(at=NOW - 301)) == Rejected("stale")
    assert judge(signed(at=0)) == Rejected("stale")
    assert judge(signed(at=NOW + 301)) == Rejected("future")
    assert judge(signed(at=999_999_999_999)) == Rejected("future")
    assert judge(signed(at=NOW - 301, key=OTHER_KEY)) == WRONG


def test_a_body_that_was_decoded_and_encoded_again_is_not_what_was_signed() -> None:
    body = b'{"text": "gr\\u00fc\\u00dfe",  "n": 1.0}'
    again = json.dumps(json.loads(body)).encode()
    assert isinstance(judge(signed(body), body), Signed)
    assert judge(signed(body), again) == WRONG
    assert judge(signed_by_github(body), again, "github") == WRONG


def test_one_good_signature_among_several_is_enough() -> None:
    old = sign(OLD_KEY, "d1", NOW, BODY)
    other = sign(OTHER_KEY, "d1", NOW, BODY)
    headers = changed(signature=f"{other} {raw('sha1', 'v1a')} {old}")
    assert isinstance(judge(headers), Signed)


def test_of_github_the_body_is_the_key_whatever_id_stands_beside_it() -> None:
    first = judge(signed_by_github(), scheme="github")
    replayed = signed_by_github() | {"x-github-delivery": "another"}
    second = judge(replayed, scheme="github")
    assert isinstance(first, Signed)
    assert isinstance(second, Signed)
    assert first.key == second.key == hashlib.sha256(BODY).hexdigest()
    assert (first.event, second.delivery) == ("push", "another")


@pytest.mark.parametrize(
    ("secret", "why"),
    [
        ("", "shorter"),
        ("k3y", "shorter"),
        ("whsec_", "shorter"),
        ("whsec_c2hvcnQ=", "shorter"),
        ("whsec_no base64 at all, so no key", "not base64"),
    ],
)
def test_what_is_no_key_is_refused_and_not_repeated(secret: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as caught:
        key_of(secret)
    assert (secret.removeprefix("whsec_") or SECRET) not in str(caught.value)


def test_who_is_refused_cannot_tell_from_the_time_what_was_wrong() -> None:
    body = b"x" * 500_000
    good = signed(body)
    ways: list[Callable[[], object]] = [
        lambda: judge(good, body),
        lambda: judge({}, body),
        lambda: judge(signed_by_github(b""), body),
        lambda: judge(good | {"webhook-signature": "v1,AAAA"}, body),
        lambda: judge({}, body, "github"),
    ]
    fastest = [1.0 for _ in ways]
    for _ in range(15):
        for index, way in enumerate(ways):
            begun = time.perf_counter()
            way()
            fastest[index] = min(fastest[index], time.perf_counter() - begun)
    # All make two digests of the body; without one it would be half, or nothing.
    assert max(fastest) < 1.8 * min(fastest), fastest
