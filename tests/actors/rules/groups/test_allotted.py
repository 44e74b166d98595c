"""Proves that open messages go their way though the agents change."""

from __future__ import annotations

from hypothesis import given, strategies as st

from actors.messages.inbound import Address, Inbound
from actors.rules.groups.assignments import StickyRoutes
from actors.rules.groups.routes import Routed, route, routing_table

ALL = ("anna", "ben", "carl", "dora")
teams = st.sets(st.sampled_from(ALL), min_size=1)
texts = st.sampled_from(["hi", "@anna hi", "@ben and @carl", "@dora", "@carl"])


def heard(text: str, name: str) -> Inbound:
    return Inbound(
        id=name,
        platform="test",
        platform_id=name,
        address=Address("fake", "room"),
        sender_id="zoe",
        sender_name="Zoe",
        text=text,
        is_direct=True,
        received_at=0.0,
        correlation_id=name,
    )


def whom(allotted: StickyRoutes, message: Inbound) -> tuple[str, ...]:
    outcome = allotted.route(message)
    return outcome.agents if isinstance(outcome, Routed) else ()


@given(
    first=teams, later=st.lists(teams, max_size=4), words=st.lists(texts, max_size=5)
)
def test_a_message_in_hand_goes_the_same_way_as_long_as_somebody_is_there(
    first: set[str], later: list[set[str]], words: list[str]
) -> None:
    messages = [heard(text, str(n)) for n, text in enumerate(words)]
    allotted = StickyRoutes(routing_table(sorted(first)))
    before = {each.id: whom(allotted, each) for each in messages}
    there = set(first)
    for team in later:
        there |= team  # whoever left is finishing
        table = routing_table(sorted(team))
        allotted.replace(table, sorted(there - team), messages)
        assert set(allotted.agents) == there
        for each in messages:
            assert before[each.id] in ((), whom(allotted, each))
            before[each.id] = whom(allotted, each)
        new = heard("@carl hi", "new")
        assert allotted.route(new) == route(new, table)


def test_who_has_left_for_good_hears_nothing() -> None:
    message = heard("@carl hi", "1")
    allotted = StickyRoutes(routing_table(["anna", "carl"], default_agent="anna"))
    rest = routing_table(["anna"], default_agent="anna")
    allotted.replace(rest, ("carl",), [message])
    allotted.forget_all_but({"1"})
    assert whom(allotted, message) == ("carl",)
    allotted.replace(rest, (), [message])
    assert whom(allotted, message) == ("anna",)


def test_what_is_settled_is_forgotten() -> None:
    message = heard("@carl hi", "1")
    allotted = StickyRoutes(routing_table(["anna", "carl"], default_agent="anna"))
    rest = routing_table(["anna"], default_agent="anna")
    allotted.replace(rest, ("carl",), [message])
    allotted.forget_all_but(set())
    assert whom(allotted, message) == ("anna",)
