"""Proves what a node decides from the rows it has read, and from its own clock."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given, strategies as st

from runtime.nodes.membership import Membership, MembershipPlan, Suspicion
from runtime.nodes.rows import (
    Format,
    Formats,
    LeaseRow,
    Member,
    NodeRow,
    why_apart,
)

TTL = 6.0


def joined(me: str = "a") -> Membership:
    rules = Membership(me, TTL)
    rules.joined(0.0, Member(1, 1, ()))
    return rules


def plan(
    rules: Membership, now: float, beats: dict[str, int], *leases: LeaseRow
) -> MembershipPlan:
    return rules.plan(now, [NodeRow(name, 1, n) for name, n in beats.items()], leases)


def watch(rules: Membership, until: float, *leases: LeaseRow) -> MembershipPlan:
    """Read each two seconds while `b` stands still."""
    given_plan, now = plan(rules, 0.0, {"a": 0, "b": 7}, *leases), 0.0
    while now < until:
        now += 2.0
        given_plan = plan(rules, now, {"a": int(now), "b": 7}, *leases)
    return given_plan


def test_a_node_that_stands_still_is_taken_over_from() -> None:
    lease = LeaseRow("part/1", "b", 3)
    assert watch(joined(), 4.0, lease).take_over is None
    found = watch(joined(), 6.0, lease).take_over
    assert found is not None
    assert (found.dead, found.owners) == (NodeRow("b", 1, 7), {"part/1": "a"})


def test_an_observer_that_was_paused_counts_anew() -> None:
    rules = joined()
    watch(rules, 4.0)
    assert plan(rules, 60.0, {"a": 9, "b": 7}).take_over is None


@given(gaps=st.lists(st.floats(0.1, 8.0), max_size=40), steps=st.lists(st.booleans()))
def test_only_who_was_seen_to_stand_still_long_enough_is_suspected(
    gaps: list[float], steps: list[bool]
) -> None:
    suspicion, now, beat = Suspicion("a", TTL), 0.0, 0
    since, last = 0.0, 0.0
    for gap, moves in zip(gaps, [*steps, *[False] * 40], strict=False):
        now += gap
        beat += moves
        if moves or now - last > TTL / 2:
            since = now
        last = now
        if suspicion.read(now, [NodeRow("b", 1, beat)]):
            assert now - since >= TTL


def test_leases_start_when_they_are_mine_and_end_when_they_are_not() -> None:
    rules = joined()
    first = plan(rules, 0.0, {"a": 0}, LeaseRow("part/1", "a", 1))
    assert (first.start, first.end) == ({"part/1": 1}, ())
    again = plan(rules, 2.0, {"a": 1}, LeaseRow("part/1", "a", 1))
    assert (again.start, again.end) == ({}, ())
    newer = plan(rules, 4.0, {"a": 2}, LeaseRow("part/1", "a", 3))
    assert (newer.start, newer.end) == ({"part/1": 3}, ("part/1",))
    lost = plan(rules, 6.0, {"a": 3}, LeaseRow("part/1", "b", 4))
    assert (lost.start, lost.end) == ({}, ("part/1",))


def test_rows_read_before_a_lease_was_given_away_do_not_bring_it_back() -> None:
    rules = joined()
    row = LeaseRow("part/1", "a", 1)
    plan(rules, 0.0, {"a": 0}, row)
    rules.gave("part/1")
    assert not plan(rules, 2.0, {"a": 1}, row).start
    assert plan(rules, 4.0, {"a": 2}, LeaseRow("part/1", "a", 3)).start == {"part/1": 3}


def test_the_owner_gives_away_what_another_is_to_have() -> None:
    rules = joined()
    wanted = LeaseRow("part/1", "a", 1, wanted="b")
    found = plan(rules, 0.0, {"a": 0, "b": 0}, wanted)
    assert not found.drain, "b may not have seen it yet, and would look too late"
    assert plan(rules, 1.0, {"a": 1, "b": 0}, wanted).drain == {"part/1": "b"}
    assert not plan(rules, 2.0, {"a": 2}, wanted).drain, "who is to have it is gone"


def test_who_leaves_gives_all_away_and_takes_nothing() -> None:
    rules = joined()
    rules.leave()
    mine, free = LeaseRow("part/1", "a", 1), LeaseRow("part/2", "", 0)
    found = plan(rules, 0.0, {"a": 0, "b": 0}, mine, free)
    assert found.drain == {"part/1": "b"}
    assert not found.adopt


def test_who_leaves_gives_to_whom_it_said_as_long_as_that_node_is_there() -> None:
    rules = joined()
    rules.leave()
    beats = {"a": 0, "b": 0, "c": 0}
    leases = [LeaseRow(f"part/{n}", "a", 1) for n in range(9)]
    said = plan(rules, 0.0, beats, *leases).drain
    assert {*said.values()} == {"b", "c"}
    left = [LeaseRow(x, "a", 1, said[x]) for x in said if said[x] == "c"]
    given = [LeaseRow(x, "b", 2) for x in said if said[x] == "b"]
    for name in given[:-1]:  # others may have become another node's meanwhile
        found = plan(rules, 1.0, beats, *left, name).drain
        assert found == {row.name: "c" for row in left}
    del beats["c"]
    found = plan(rules, 2.0, beats, *left, *given).drain
    assert found == {row.name: "b" for row in left}


def test_who_is_drained_has_others_want_all_and_gives_it_when_they_have_seen() -> None:
    rules = joined()
    rows = [NodeRow("a", 1, 0, is_drained=True), NodeRow("b", 1, 0)]
    mine, free = LeaseRow("part/1", "a", 1), LeaseRow("part/2", "", 0)
    found = rules.plan(0.0, rows, [mine, free])
    assert (found.want, found.drain, found.adopt) == ({"part/1": "b"}, {}, {})
    assert rules.gives_all
    told = LeaseRow("part/1", "a", 1, wanted="b")
    found = rules.plan(0.1, rows, [told])
    assert (found.want, found.drain) == ({}, {})
    assert rules.plan(1.2, rows, [told]).drain == {"part/1": "b"}


@pytest.mark.parametrize("others", [[], [NodeRow("b", 1, 0, is_drained=True)]])
def test_who_is_drained_works_on_while_nobody_else_may(others: list[NodeRow]) -> None:
    rules, free = joined(), LeaseRow("part/2", "", 0)
    rows = [NodeRow("a", 1, 0, is_drained=True), *others]
    found = rules.plan(0.0, rows, [LeaseRow("part/1", "a", 1), free])
    assert (found.want, found.drain) == ({}, {})
    assert found.adopt == ({} if others else {"part/2": "a"})
    assert not rules.gives_all


def test_who_is_drained_gives_nothing_to_who_only_starts_and_gets_nothing() -> None:
    rows = [NodeRow("a", 1, 0, is_drained=True), NodeRow("b", 1, 0)]
    leases = [LeaseRow("part/1", "a", 1), LeaseRow("part/2", "b", 1, wanted="a")]
    found = joined().plan(0.0, rows, leases, begun={"a"})
    assert (found.want, found.drain) == ({}, {})
    other = joined("b")
    for now in (0.0, 1.2, 2 * TTL + 1.0):
        found = other.plan(now, rows, leases, begun={"a", "b"})
        assert (found.want, found.drain) == ({}, {}), "what was to go to it stays"


def test_to_be_drained_is_no_sign_of_life() -> None:
    suspicion = Suspicion("a", TTL)
    found: tuple[NodeRow, ...] = ()
    for now in range(8):
        row = NodeRow("b", 1, 7, is_drained=now > 3)
        found = suspicion.read(float(now), [row])
    assert [row.id for row in found] == ["b"]


def test_a_lease_of_a_node_that_is_gone_or_of_nobody_finds_an_owner() -> None:
    rules = joined()
    gone = NodeRow("b", 2, 5, "fenced")
    leases = [LeaseRow("part/1", "b", 1), LeaseRow("part/2", "", 0)]
    found = rules.plan(0.0, [NodeRow("a", 1, 0), gone], leases)
    assert found.take_over is not None
    assert (found.take_over.dead, found.take_over.owners) == (gone, {"part/1": "a"})
    assert found.adopt == {"part/2": "a"}


def test_the_first_node_evens_out_once_it_is_calm() -> None:
    rules = joined()
    leases = [LeaseRow(f"part/{n}", "a", 1) for n in range(4)]
    now = 0.0
    while now < 2 * TTL:
        assert not plan(rules, now, {"a": 0, "b": int(now)}, *leases).want
        now += 2.0
    assert [*plan(rules, now, {"a": 0, "b": 99}, *leases).want.values()] == ["b", "b"]
    other = joined("b")
    plan(other, 0.0, {"a": 0, "b": 0}, *leases)
    assert not plan(other, 2 * TTL, {"a": 1, "b": 0}, *leases).want


@given(
    ttl=st.floats(2.0, 60.0),
    died=st.floats(0.0, 1.0),
    pauses=st.lists(st.floats(0.01, 1.0), min_size=200, max_size=200),
)
def test_a_death_is_noticed_a_look_later_than_after_ttl_at_most(
    ttl: float, died: float, pauses: list[float]
) -> None:
    rules = Membership("a", ttl)
    rules.joined(0.0, Member(1, 1, ()))
    now = 0.0
    for pause in pauses:
        found = plan(rules, now, {"a": 0, "b": min(int(now * 100), int(died * 100))})
        if found.take_over is not None:
            break
        # As often as it is to, or sooner, as it is when leases move.
        now += min(pause * ttl, rules.next_look(now))
    else:
        pytest.fail("it was never noticed")
    assert ttl - 0.01 <= now - died <= ttl + rules.look_every + 0.02
    assert rules.look_every <= 1.0


def test_a_node_that_is_about_to_be_given_a_lease_looks_often() -> None:
    rules = joined("b")
    plan(rules, 0.0, {"a": 0, "b": 0}, LeaseRow("part/1", "a", 1, wanted="b"))
    assert rules.next_look(0.0) < 0.2
    plan(rules, 0.1, {"a": 0, "b": 0}, LeaseRow("part/1", "b", 2))
    assert rules.next_look(0.1) == rules.look_every
    first, leases = joined(), [LeaseRow(f"part/{n}", "b", 1) for n in range(4)]
    plan(first, 0.0, {"a": 0, "b": 0}, *leases)
    found = plan(first, 2 * TTL, {"a": 1, "b": 1}, *leases)
    assert {*found.want.values()} == {"a"}
    assert first.next_look(2 * TTL) < 0.2, "it wants them for itself"


def test_who_has_not_begun_gives_up_what_others_can_do() -> None:
    rows = [NodeRow("a", 2, 0), NodeRow("b", 1, 5)]
    mine, free = LeaseRow("part/1", "a", 1), LeaseRow("part/2", "", 0)
    back = joined().plan(0.0, rows, [mine, free], begun={"b"})
    assert (back.drain, back.adopt) == ({"part/1": ""}, {})
    other = joined("b").plan(0.0, rows, [mine, free], begun={"b"})
    assert other.adopt == {"part/2": "b"}
    for begun in (set[str](), {"a", "b"}, {"gone"}):
        assert not joined().plan(0.0, rows, [mine, free], begun=begun).drain


@pytest.mark.parametrize(
    ("now", "may", "is_lost"),
    [(0.0, True, False), (4.0, False, False), (6.0, False, True)],
)
def test_a_node_that_cannot_renew_begins_nothing_then_ends_all(
    now: float, *, may: bool, is_lost: bool
) -> None:
    rules = joined()
    plan(rules, 0.0, {"a": 0}, LeaseRow("part/1", "a", 1))
    assert (rules.may_begin(now), rules.is_lost(now)) == (may, is_lost)
    rules.renewed(now)
    assert rules.may_begin(now)
    assert rules.ended() == ("part/1",)
    assert rules.member is None
    assert not rules.may_begin(now)
    assert not rules.is_lost(now)
    assert rules.held == {}


class Release(NamedTuple):
    """A release of a history in which each one leaves room for some before it."""

    number: int
    formats: Formats


@st.composite
def histories(draw: st.DrawFn) -> list[Release]:
    """Make releases by the two rules: versions only grow, and nobody needs the new."""
    tables = protocol = Format(1, 1)
    found = [Release(0, Formats(tables, protocol))]
    for number in range(1, 6):
        before = found[-1].formats
        tables, protocol = (
            Format(
                x.version + draw(st.integers(0, 2)),
                draw(st.integers(x.oldest, x.version)),
            )
            for x in (before.tables, before.protocol)
        )
        found.append(Release(number, Formats(tables, protocol)))
    return found


@given(histories())
def test_each_release_works_beside_the_one_before_it(releases: list[Release]) -> None:
    for one, other in pairwise(releases):
        assert not why_apart(one.formats, other.formats)


@given(histories(), st.integers(0, 5), st.integers(0, 5))
def test_both_of_two_releases_say_the_same_of_each_other(
    releases: list[Release], one: int, other: int
) -> None:
    mine, theirs = releases[one].formats, releases[other].formats
    told, heard = why_apart(mine, theirs), why_apart(theirs, mine)
    assert bool(told) == bool(heard)
    newer, older = releases[max(one, other)].formats, releases[min(one, other)].formats
    is_able = all(
        known.version >= needed.oldest
        for known, needed in (
            (older.tables, newer.tables),
            (older.protocol, newer.protocol),
        )
    )
    assert is_able == (not told)


@given(histories())
def test_who_lives_beside_a_release_lives_beside_all_between(
    releases: list[Release],
) -> None:
    first, *others = [each.formats for each in releases]
    apart = [bool(why_apart(first, each)) for each in others]
    assert apart == sorted(apart)


def test_who_does_not_say_beside_whom_it_works_works_beside_nobody() -> None:
    assert why_apart(Formats(Format(1, 1), Format(1, 1)), None)
