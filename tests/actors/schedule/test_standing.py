"""What the settings want kept is made once, changed with them, and ends with them."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import Any

import msgspec
from hypothesis import given, strategies as st

from actors.messages.inbound import Address
from actors.schedule.appointments import Appointment, name_of, settle

NOW = 1_700_000_000.5


def zone_of(_: Appointment) -> tzinfo:
    return UTC


def wanted(**fields: Any) -> Appointment:
    given_: dict[str, Any] = {
        "kind": "autonomous",
        "agent": "anna",
        "address": Address("fake", "ops"),
        "sender_id": "",
        "repeat": "every 6h",
        "anchor": 0.0,
    }
    return Appointment(**{**given_, **fields})


def made(it: Appointment, now: float = NOW) -> Appointment:
    found = settle({}, {"a": it}, now, zone_of)["a"]
    assert found is not None
    return found


def test_it_begins_after_one_period() -> None:
    it = made(wanted())
    assert it.next_due == 1_700_000_000 + 6 * 3600
    assert it.created_at == NOW


def test_what_is_as_wanted_is_not_written_again() -> None:
    it = made(wanted())
    assert settle({"a": it}, {"a": wanted()}, NOW + 9e6, zone_of) == {}


def test_what_is_no_longer_wanted_goes() -> None:
    assert settle({"a": made(wanted())}, {}, NOW, zone_of) == {"a": None}


KNOWN = st.fixed_dictionaries(
    {
        "fired": st.integers(0, 99),
        "skipped": st.integers(0, 99),
        "failures": st.integers(0, 9),
        "paused": st.sampled_from(["", "by hand", "failures"]),
        "last_due": st.floats(0, 2e9),
        "run_at": st.floats(0, 2e9),
    }
)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "text": st.text(max_size=9),
        "tokens": st.integers(0, 9),
        "repeat": st.sampled_from(["every 6h", "every 1h", "daily", "0 9 * * *"]),
        "address": st.sampled_from([Address("fake", "ops"), Address("fake", "b")]),
    },
)


@given(KNOWN, CHANGES)
def test_what_is_known_outlives_a_change_of_the_settings(
    known: dict[str, Any], changes: dict[str, Any]
) -> None:
    was = msgspec.structs.replace(made(wanted()), **known)
    want = wanted(**changes)
    it = settle({"a": was}, {"a": want}, NOW + 50, zone_of).get("a", was)
    assert it is not None
    assert {name: getattr(it, name) for name in known} == known
    assert (it.text, it.repeat, it.address) == (want.text, want.repeat, want.address)
    is_same = want.repeat == was.repeat
    assert (it.next_due == was.next_due) or not is_same
    if not is_same:
        assert it.next_due > NOW + 50
    assert settle({"a": it}, {"a": want}, NOW + 60, zone_of) == {}


@given(st.text(), st.text())
def test_names_are_the_agents_own(one: str, other: str) -> None:
    assert (name_of("autonomous", one) == name_of("autonomous", other)) == (
        one == other
    )
    assert name_of("autonomous", one) == name_of("autonomous", one).upper()
    assert name_of("autonomous", one) != name_of("heartbeat", one)
