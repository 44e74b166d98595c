"""Proves that what is told of a decision is what is decided."""

from __future__ import annotations

from hypothesis import given

from actors.config.access import AgentAccessConfig
from actors.messages.inbound import Inbound
from actors.rules.groups.access import EVERYBODY, agent_access
from actors.rules.groups.activation import REASONS, Situation, judge
from actors.rules.groups.explain import OUTCOMES, explain
from actors.rules.groups.routes import RoutingTable, is_for_activation
from tests.actors.rules.groups.test_activation import (
    NAMES,
    messages,
    said,
    situations,
    table,
    tables,
)

ORDER = ["own", "present", "bot", "never", *REASONS, "deference", "check"]


@given(messages, tables, situations)
def test_each_agent_has_each_rule_s_verdict_in_order_and_its_outcome(
    inbound: Inbound, routes: RoutingTable, situation: Situation
) -> None:
    found = explain(inbound, routes, situation, EVERYBODY)
    assert all(step.why and step.verdict for step in found.steps)
    if not is_for_activation(inbound):
        assert "delegated" in [step.rule for step in found.steps]
        return
    judged = judge(inbound, routes, situation).judged
    for each, line in zip(judged, found.outcome, strict=True):
        why = each.reason or each.check or each.silence or ""
        assert line == f"{each.agent} {OUTCOMES[why]}"
        of = {step.rule: step for step in found.steps if step.agent == each.agent}
        assert list(of) == ORDER
        if each.reason in REASONS:
            yes = [rule for rule in REASONS if of[rule].verdict == "yes"]
            assert yes[0] == each.reason


def test_who_may_not_use_an_agent_is_told_by_which_rule() -> None:
    rule = AgentAccessConfig(agent="anna", sender="zoe", may_use=False)
    access = agent_access([rule], ())
    found = explain(said("@anna @ben hi"), table(), Situation(), access)
    assert found.outcome[:2] == (
        "anna is silent: access rule 1 fits",
        "ben answers: it is mentioned",
    )
    assert [x.verdict for x in found.steps if x.rule == "access"] == ["no", "yes"]
    direct = explain(said("@anna hi", is_direct=True), table(), Situation(), access)
    assert direct.outcome == ("anna is silent: access rule 1 fits",)


def test_where_nobody_answers_it_is_said_why() -> None:
    found = explain(said("hi", is_direct=True), table(), Situation(), EVERYBODY)
    assert found.outcome[0].startswith("nobody answers: No agent answers here")
    lines = explain(said("hi"), table(), Situation(), EVERYBODY).outcome
    assert lines == tuple(f"{x} is silent: it has no reason to answer" for x in NAMES)
