"""The small pure rules around messages."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from connectors.chat.requests import (
    LONGEST_ASKED,
    BusyError,
    LostError,
    RefusedError,
    ShutOutError,
)
from connectors.chat.slack.events import (
    Mark,
    Ours,
    Reason,
    SlackMessage,
    SlackSkipped,
    after,
    before,
    is_ts,
    made_at,
    message_id,
    order,
    plain,
    read,
    read_command,
    taken_apart,
)
from connectors.chat.slack.listener import signed, verify
from connectors.chat.slack.sdk import read_error
from connectors.chat.slack.senders import name_of
from runtime.clock import SystemClock
from runtime.ids import IdSource
from tests.support.tiers import examples

NAMES = {"U1": "Zoe", "W2": "Sam"}
OURS = Ours({"UANNA": "anna"}, frozenset({"BANNA"}))

moments = st.builds(
    "{:010}.{:06}".format, st.integers(0, 9_999_999_999), st.integers(0, 999_999)
)
NAMED = ["type", "ts", "channel", "user", "text", "files", "subtype", "bot_id"]
keys = st.sampled_from(NAMED) | st.text(max_size=5)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "ts", "channel", "user", "text", "files", "subtype"]
            )
            | st.text(max_size=5),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("hello <@U1>", "hello @Zoe"),
        ("<@U9|zed> and <@U9>", "@zed and @U9"),
        ("<#C1|ops> <#C2>", "#ops #C2"),
        ("<!here> <!channel> <!everyone>", "@here @channel @everyone"),
        ("<!subteam^S1|@crew> <!subteam^S2>", "@crew @S2"),
        ("<!date^1^{date}|today>", "today"),
        ("<https://a.example>", "https://a.example"),
        ("<https://a.example|a.example>", "https://a.example"),
        ("<https://a.example|look>", "look (https://a.example)"),
        ("<mailto:z@a.example|z@a.example>", "z@a.example"),
        ("1 &lt; 2 &amp;&amp; 3 &gt; 2", "1 < 2 && 3 > 2"),
        ("&amp;lt;", "&lt;"),
    ],
)
def test_what_people_wrote_reads_as_on_the_screen(raw: str, shown: str) -> None:
    assert plain(raw, lambda user: NAMES.get(user, "")) == shown


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"type": "reaction_added"}, "reaction"),
        ({"type": "reaction_removed"}, "reaction"),
        ({"type": "member_joined_channel"}, "state"),
        ({"type": "channel_rename"}, "state"),
        ({"type": "group_open"}, "state"),
        ({"type": "app_home_opened"}, "unknown"),
        ({"type": "message", "subtype": "channel_topic"}, "state"),
        ({"type": "message", "channel": "C1", "ts": "here", "user": "U1"}, "malformed"),
        ({"type": "message", "channel": "C1", "user": "U1"}, "malformed"),
    ],
)
def test_what_is_left_out_says_why(event: dict[str, object], reason: Reason) -> None:
    assert read(event, OURS) == SlackSkipped(reason)


def test_what_our_own_apps_say_is_left_out() -> None:
    said: dict[str, object] = {
        "type": "message",
        "channel": "C12345678",
        "ts": "1700000000.000100",
    }
    for own in ({"user": "UANNA"}, {"user": "U1", "bot_id": "BANNA"}):
        assert read({**said, **own}, OURS) == SlackSkipped("own")


@settings(max_examples=examples(40, deep=400))
@given(event=st.dictionaries(keys, anything, max_size=9))
def test_whatever_comes_is_a_message_or_a_reason(event: dict[str, object]) -> None:
    for kind in ("message", "app_mention", None):
        given_event = {**event, "type": kind} if kind else event
        assert isinstance(read(given_event, OURS), SlackMessage | SlackSkipped)
    assert isinstance(
        read_command(event, "anna", "/callboard"), SlackMessage | SlackSkipped
    )


@given(moments)
def test_moments_are_names_and_not_numbers(ts: str) -> None:
    assert is_ts(ts)
    assert taken_apart(message_id("C1", ts)) == ("C1", ts)
    assert order(before(after(ts))) == order(ts)
    if order(ts) > (0, 0):
        assert order(after(before(ts))) == order(ts)


@given(
    st.lists(
        st.tuples(moments, st.booleans()), unique_by=lambda each: each[0], max_size=20
    )
)
def test_the_mark_never_passes_what_is_not_in(told: list[tuple[str, bool]]) -> None:
    mark = Mark()
    for ts, _ in told:
        mark.begin(ts)
    last = mark.ts
    for ts, is_in in told:
        if is_in:
            mark.end(ts)
        assert order(mark.ts) >= order(last)
        last = mark.ts
    for ts, is_in in told:
        if not is_in and order(ts) > (0, 0):
            assert order(mark.ts) < order(ts)
    if told and all(is_in for _, is_in in told):
        assert order(mark.ts) == max(order(ts) for ts, _ in told)


def test_our_ids_say_when_they_were_made() -> None:
    clock = SystemClock()
    assert abs(made_at(f"{IdSource(clock).new()}/anna/0") - clock.wall()) < 5
    assert made_at("short") == made_at("no ulid at all") == 0.0


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (200, {"error": "ratelimited"}, BusyError),
        (429, {}, BusyError),
        (200, {"error": "invalid_auth"}, ShutOutError),
        (200, {"error": "internal_error"}, LostError),
        (503, {}, LostError),
        (200, {}, LostError),
        (404, {}, LostError),
        (200, {"error": "channel_not_found"}, RefusedError),
        (200, {"error": ["odd"]}, LostError),
    ],
)
def test_a_refusal_is_of_one_of_four_kinds(
    status: int, said: dict[str, object], kind: type[Exception]
) -> None:
    assert type(read_error(status, {}, said)) is kind


def test_slack_is_granted_an_hour_at_most() -> None:
    error = read_error(429, {"retry-after": "999999"}, {})
    assert isinstance(error, BusyError)
    assert error.retry_after == LONGEST_ASKED


def test_a_missing_scope_is_named() -> None:
    said: dict[str, object] = {"error": "missing_scope", "needed": "files:read"}
    assert "files:read" in str(read_error(200, {}, said))


def test_an_app_that_is_not_in_a_channel_is_to_be_invited() -> None:
    error = read_error(200, {}, {"error": "not_in_channel"})
    assert str(error) == "Slack says not_in_channel: /invite the app to that channel"


@given(
    body=st.binary(max_size=50),
    other=st.binary(max_size=50),
    drift=st.integers(-1000, 1000),
)
def test_a_signature_holds_for_its_bytes_and_five_minutes(
    body: bytes, other: bytes, drift: int
) -> None:
    headers = {
        "x-slack-request-timestamp": "1700000000",
        "x-slack-signature": signed("secret", "1700000000", body),
    }
    expected = "right" if abs(drift) <= 300 else "stale"
    now = 1_700_000_000 + drift
    assert verify("secret", headers, body, now) == expected
    if other != body:
        assert verify("secret", headers, other, now) == "bad_signature"
    assert verify("", headers, body, now) == "bad_signature"


@pytest.mark.parametrize(
    ("sign", "name"),
    [
        ("👀", "eyes"),
        ("⚠️", "warning"),
        ("⚠", "warning"),
        (":party_parrot:", "party_parrot"),
        ("?", ""),
    ],
)
def test_signs_have_names(sign: str, name: str) -> None:
    assert name_of(sign) == name
