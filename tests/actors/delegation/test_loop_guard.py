"""Proves that every chain of delegations ends, and that refusals say why."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from actors.delegation.loop_guard import (
    DelegationAllowed,
    DelegationLimits,
    DelegationRefused,
    may_delegate,
)
from actors.messages.inbound import DelegationChain

AGENTS = ("anna", "ben", "Carl")
LIMITS = DelegationLimits(AGENTS, max_hops=2)

chains = st.builds(
    DelegationChain,
    st.lists(st.sampled_from(AGENTS) | st.text()).map(tuple),
    st.floats(0, 100),
)
targets = st.sampled_from([*AGENTS, "ANNA", "nobody"]) | st.text()


def refusal(result: DelegationAllowed | DelegationRefused) -> tuple[str, str]:
    assert isinstance(result, DelegationRefused)
    return result.reason, result.text


def test_a_person_s_message_begins_a_chain() -> None:
    result = may_delegate(DelegationChain(), "anna", "BEN", LIMITS, now=0)
    assert result == DelegationAllowed("ben", DelegationChain(("anna", "ben")))


def test_a_chain_keeps_its_deadline() -> None:
    chain = DelegationChain(("anna", "ben"), deadline=9)
    result = may_delegate(chain, "ben", "carl", LIMITS, now=8.9)
    assert result == DelegationAllowed(
        "Carl", DelegationChain(("anna", "ben", "Carl"), deadline=9)
    )


def test_a_chain_that_does_not_end_with_the_source_is_completed() -> None:
    result = may_delegate(DelegationChain(("anna",)), "ben", "Carl", LIMITS, now=0)
    assert result == DelegationAllowed("Carl", DelegationChain(("anna", "ben", "Carl")))


@pytest.mark.parametrize(
    ("chain", "target", "reason", "words"),
    [
        (
            DelegationChain(("anna", "ben", "anna")),
            "ben",
            "max_hops",
            "anna → ben → anna reached the limit of 2 hops.",
        ),
        (
            DelegationChain(),
            "ann",
            "unknown_target",
            "no agent 'ann'. Did you mean anna?",
        ),
        (DelegationChain(), "Anna", "self", "anna cannot delegate to itself."),
        (DelegationChain((), 5), "ben", "deadline", "the time for anna is over."),
    ],
)
def test_a_refusal_names_its_reason(
    chain: DelegationChain, target: str, reason: str, words: str
) -> None:
    found, text = refusal(may_delegate(chain, "anna", target, LIMITS, now=5))
    assert found == reason
    assert text.startswith("Delegation stopped: ")
    assert words in text


@pytest.mark.parametrize(
    ("delegates", "words"),
    [((), "anna may not ask ben, only nobody."), (("Carl",), "ben, only Carl.")],
)
def test_only_listed_delegates_may_be_asked(
    delegates: tuple[str, ...], words: str
) -> None:
    limits = DelegationLimits(AGENTS, 3, delegates)
    reason, text = refusal(
        may_delegate(DelegationChain(), "anna", "ben", limits, now=0)
    )
    assert reason == "not_a_delegate"
    assert words in text


def test_a_listed_delegate_may_be_asked_in_any_case() -> None:
    limits = DelegationLimits(AGENTS, 3, ("CARL",))
    result = may_delegate(DelegationChain(), "anna", "carl", limits, now=0)
    assert isinstance(result, DelegationAllowed)


@pytest.mark.parametrize(("hops", "words"), [(0, "0 hops"), (1, "1 hop.")])
def test_few_hops_are_counted_in_good_words(hops: int, words: str) -> None:
    chain = DelegationChain(("ben", "anna")[1 - hops :])
    limits = DelegationLimits(AGENTS, hops)
    _, text = refusal(may_delegate(chain, "anna", "ben", limits, now=0))
    assert words in text


def test_a_chain_of_eight_is_shown_whole() -> None:
    chain = DelegationChain(("ben", "anna") * 4)
    _, text = refusal(may_delegate(chain, "anna", "ben", LIMITS, now=0))
    assert f": {' → '.join(chain.agents)} reached" in text


def test_a_long_chain_is_shown_by_its_ends() -> None:
    chain = DelegationChain(("anna", "ben") * 20 + ("anna",))
    _, text = refusal(may_delegate(chain, "anna", "ben", LIMITS, now=0))
    ends = "anna → ben → anna → ben → … → ben → anna → ben → anna"
    assert f": {ends} reached" in text


@given(st.lists(targets), st.integers(0, 6))
def test_delegations_over_any_graph_end_within_the_hops(
    asked: list[str], max_hops: int
) -> None:
    limits = DelegationLimits(AGENTS, max_hops)
    chain, source, steps = DelegationChain(), "anna", 0
    for target in asked:
        result = may_delegate(chain, source, target, limits, now=0)
        if isinstance(result, DelegationAllowed):
            chain, source, steps = result.chain, result.target, steps + 1
            assert chain.agents[-1] == source
    assert steps <= max_hops


@given(chains, st.sampled_from(AGENTS), targets, st.floats(0, 100))
def test_every_question_is_answered_and_an_allowed_chain_is_one_hop_longer(
    chain: DelegationChain, source: str, target: str, now: float
) -> None:
    result = may_delegate(chain, source, target, LIMITS, now)
    match result:
        case DelegationAllowed(chain=longer):
            assert longer.agents[-2:] == (source, result.target)
            assert len(longer.agents) - 1 <= LIMITS.max_hops
            assert longer.deadline == chain.deadline
            assert not chain.deadline or now < chain.deadline
        case DelegationRefused(text=text):
            assert text
