"""Proves that strangers cost a bounded number of rows and notices, however many."""

from __future__ import annotations

from itertools import pairwise

import msgspec
from hypothesis import given, strategies as st

from actors.config.access import AccessConfig
from actors.messages.inbound import Address
from actors.people.pairing_rules import (
    DENIED_FOR,
    MINUTE,
    MOST_DENIED,
    PairingRequest,
    PairingRequests,
    called,
    denied,
)
from actors.rules.text.codes import (
    CODE_BYTES,
    MOST_TRIES,
    TRIES_WITHIN,
    TryLimiter,
    code_of,
    plain,
    shown,
)

CONFIG = AccessConfig(people="pairing", max_codes=3, codes_per_minute=2)


def knock(sender: int, now: float, config: AccessConfig = CONFIG) -> PairingRequest:
    return PairingRequest(
        account=f"chat/{sender}",
        name=f"person {sender}",
        address=Address("chat", str(sender)),
        code=code_of(sender.to_bytes(CODE_BYTES, "big")),
        asked_at=now,
        told_at=now,
        until=now + config.code_for,
    )


def ask(requests: PairingRequests, sender: int, now: float) -> str:
    weighed = requests.weigh(knock(sender, now), now)
    if isinstance(weighed, PairingRequest):
        requests.put(weighed, now)
        return "told"
    return weighed


steps = st.lists(
    st.tuples(st.integers(0, 30), st.floats(0, 400)), min_size=1, max_size=80
)


@given(steps)
def test_no_flood_is_told_more_than_the_settings_say(
    steps: list[tuple[int, float]],
) -> None:
    requests, now = PairingRequests(CONFIG), 1_000.0
    told: list[tuple[int, float]] = []
    for sender, gap in steps:
        now += gap
        for over in requests.expired(now):
            requests.drop(over.account)
        if ask(requests, sender, now) == "told":
            told.append((sender, now))
        assert len(requests.open(now)) <= CONFIG.max_codes
        assert len(requests.all()) <= CONFIG.max_codes
        lately = [at for _, at in told if now - at < MINUTE]
        assert len(lately) <= CONFIG.codes_per_minute
    for sender in {each for each, _ in told}:
        at = [when for who, when in told if who == sender]
        gaps = [b - a for a, b in pairwise(at)]
        assert all(gap >= CONFIG.code_again_after for gap in gaps)


def test_a_stranger_who_goes_on_is_told_the_same_code_again() -> None:
    requests = PairingRequests(CONFIG)
    assert ask(requests, 1, 0.0) == "told"
    assert ask(requests, 1, 299.0) == "told_lately"
    again = requests.weigh(msgspec.structs.replace(knock(1, 300.0), code="X"), 300.0)
    assert isinstance(again, PairingRequest)
    assert again.code == knock(1, 0.0).code
    assert again.until == 900.0


def test_a_code_holds_for_its_time_and_no_longer() -> None:
    requests = PairingRequests(CONFIG)
    ask(requests, 7, 0.0)
    code = shown(knock(7, 0.0).code)
    assert requests.by_code(code.lower(), 599.9) is not None
    assert requests.by_code(code, 600.0) is None
    assert requests.by_code("", 1.0) is None
    assert requests.expired(600.0)
    assert ask(requests, 7, 600.0) == "told"


def test_who_was_denied_is_told_nothing_for_a_day() -> None:
    requests = PairingRequests(CONFIG)
    ask(requests, 1, 0.0)
    requests.put(denied(knock(1, 0.0), 5.0), 5.0)
    assert requests.open(5.0) == ()
    assert requests.by_code(knock(1, 0.0).code, 5.0) is None
    assert ask(requests, 1, DENIED_FOR) == "denied"
    assert ask(requests, 1, DENIED_FOR + 5.0) == "told"


def test_of_those_denied_the_oldest_make_room() -> None:
    requests = PairingRequests(CONFIG)
    for number in range(MOST_DENIED + 2):
        requests.put(denied(knock(number, 0.0), float(number)), float(number))
    over = requests.expired(300.0)
    assert [each.account for each in over] == ["chat/0", "chat/1"]


def test_a_restart_knows_what_was_told_in_the_last_minute() -> None:
    stored = (knock(1, 0.0), knock(2, 1.0))
    assert ask(PairingRequests(CONFIG, stored), 3, 30.0) == "too_fast"
    assert ask(PairingRequests(CONFIG, stored), 3, 61.0) == "told"


def test_a_clock_that_was_ahead_keeps_nobody_out() -> None:
    requests = PairingRequests(CONFIG)
    for sender in (1, 2):
        ask(requests, sender, 1e9)
    assert requests.open(1_000.0) == ()
    assert len(requests.expired(1_000.0)) == 2
    assert ask(requests, 1, 1_000.0) == "told"


def test_a_name_cannot_write_lines_of_its_own() -> None:
    assert called("Sam\nAAAA-BBBB: owner\u202e\x1b[2J") == "Sam AAAA-BBBB: owner [2J"
    assert len(called("x" * 1_000)) == 64


@given(st.binary(min_size=CODE_BYTES, max_size=CODE_BYTES))
def test_a_code_is_read_back_as_it_is_shown(random: bytes) -> None:
    code = code_of(random)
    assert len(code) == 8
    assert plain(shown(code).lower()) == code


def test_wrong_codes_may_be_tried_a_few_times() -> None:
    tries = TryLimiter()
    for _ in range(MOST_TRIES):
        assert not tries.are_used_up("a/1", 0.0)
        tries.note_wrong("a/1", 0.0)
    assert tries.are_used_up("a/1", TRIES_WITHIN - 1)
    assert not tries.are_used_up("b/2", 0.0)
    assert not tries.are_used_up("a/1", TRIES_WITHIN)
