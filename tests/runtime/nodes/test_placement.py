"""Proves that leases are spread evenly, and that few of them move."""

from __future__ import annotations

from collections import Counter
from math import ceil

from hypothesis import given, strategies as st

from runtime.nodes.membership import homes, moves
from runtime.nodes.rows import LeaseRow

PARTS = [f"part/{number}" for number in range(64)]
ACCOUNTS = [f"account/{name}" for name in ("discord", "slack", "telegram")]

nodes = st.sets(st.sampled_from([f"node{n}" for n in range(9)]), min_size=1)


def rows(owners: dict[str, str]) -> list[LeaseRow]:
    return [LeaseRow(name, owner, 1) for name, owner in owners.items()]


def placed(names: set[str]) -> dict[str, str]:
    leases = [*PARTS, *ACCOUNTS]
    return homes(leases, [LeaseRow(each, "", 0) for each in leases], names)


def counts(owners: dict[str, str], kind: str) -> Counter[str]:
    return Counter(to for name, to in owners.items() if name.startswith(kind))


@given(names=nodes)
def test_every_lease_has_a_home_and_no_node_more_than_its_share(
    names: set[str],
) -> None:
    owners = placed(names)
    assert owners.keys() == {*PARTS, *ACCOUNTS}
    assert set(owners.values()) <= names
    for kind, of in (("part", PARTS), ("account", ACCOUNTS)):
        assert max(counts(owners, kind).values()) <= ceil(len(of) / len(names))


@given(names=nodes)
def test_who_joins_gets_its_share_and_nothing_else_moves(names: set[str]) -> None:
    new = "new"
    owners = placed(names)
    moved = moves(rows(owners), names | {new}, most=1000)
    assert set(moved.values()) <= {new}
    after = counts(owners | moved, "part")
    assert max(after.values()) - min(after[name] for name in names | {new}) <= 1
    assert len(moved) <= len(PARTS) // (len(names) + 1) + 1


@given(names=nodes, which=st.integers(0, 8))
def test_when_one_leaves_only_what_it_had_moves(names: set[str], which: int) -> None:
    gone = sorted(names)[which % len(names)]
    owners = placed(names)
    lost = [name for name, owner in owners.items() if owner == gone]
    found = homes(lost, rows(owners), names - {gone})
    assert found.keys() == ({*lost} if len(names) > 1 else set())
    assert gone not in found.values()


@given(names=nodes, data=st.data())
def test_no_lease_goes_to_a_node_that_cannot_act_for_it(
    names: set[str], data: st.DataObject
) -> None:
    some = st.sets(st.sampled_from(ACCOUNTS))
    barred = {name: data.draw(some) for name in names}
    able = {x: {n for n in names if x not in barred[n]} for x in ACCOUNTS}
    owners = homes(ACCOUNTS, [], names, barred)
    for lease, owner in owners.items():
        assert owner in (able[lease] or {""})
    has_owner = {lease: owner for lease, owner in owners.items() if owner}
    unfair = {lease: min(able[lease]) for lease in has_owner}
    moved = moves(rows(unfair), names, 1000, barred)
    assert all(to in able[lease] for lease, to in moved.items())
    after = Counter(dict.fromkeys(names, 0) | Counter((unfair | moved).values()))
    for lease, owner in (unfair | moved).items():
        assert all(after[owner] - after[to] < 2 for to in able[lease])


@given(names=nodes, most=st.integers(0, 5), waiting=st.integers(0, 5))
def test_no_more_moves_than_allowed_are_under_way(
    names: set[str], most: int, waiting: int
) -> None:
    owners = dict.fromkeys(PARTS, "old")
    leases = [
        LeaseRow(row.name, row.owner, 1, wanted=min(names) if n < waiting else "")
        for n, row in enumerate(rows(owners))
    ]
    assert len(moves(leases, names | {"old"}, most)) <= max(most - waiting, 0)


def test_what_is_even_stays() -> None:
    owners = {"part/0": "a", "part/1": "b", "part/2": "a"}
    assert not moves(rows(owners), {"a", "b"}, most=8)
    assert not moves([], set(), most=8)
    assert not homes(PARTS, [], set())
