"""Proves who comes first: owners, then conductors, delegations, everybody else."""

from __future__ import annotations

from hypothesis import given, strategies as st

from actors.messages.priority import (
    CONDUCTOR,
    DELEGATION,
    NORMAL,
    OWNER,
    SCHEDULED,
    of_delegation,
    of_person,
)

RANKS = st.integers(1, 10)


def test_the_order_is_as_promised() -> None:
    ranks = (OWNER, CONDUCTOR, DELEGATION, NORMAL, SCHEDULED)
    assert ranks == (1, 3, 4, 5, 10)


def test_an_owner_is_one_on_his_own_account_only() -> None:
    owners = frozenset({"discord/42"})
    assert of_person("discord", "42", owners) == OWNER
    assert of_person("slack", "42", owners) == NORMAL
    assert of_person("discord", "4", owners) == NORMAL
    assert of_person("discord", "421", owners) == NORMAL


@given(st.text(max_size=3), st.text(max_size=3))
def test_without_owners_everybody_is_equal(connector: str, sender: str) -> None:
    assert of_person(connector, sender, ()) == NORMAL


@given(asked=RANKS, is_by_conductor=st.booleans())
def test_work_handed_on_is_never_less_urgent_than_what_it_came_from(
    asked: int, *, is_by_conductor: bool
) -> None:
    rank = of_delegation(asked, is_by_conductor=is_by_conductor)
    assert rank == min(asked, CONDUCTOR if is_by_conductor else DELEGATION)
    assert rank <= asked
