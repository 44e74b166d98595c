"""Every text that a directive holds is known as free text, or as a key and the like."""

from __future__ import annotations

import msgspec
import pytest

from actors.rules.markers.actions import (
    FAMILY,
    TEXTS,
    AgentFields,
    CreateAgent,
    Delegation,
    SaveFact,
    reworded,
)

KEYS = {
    "agent",
    "category",
    "domain",
    "due",
    "id_prefix",
    "key",
    "kind",
    "language",
    "model",
    "repeat",
    "schedule",
    "skill",
    "slug",
}
"""Names, keys and times: hooks are not asked about them."""


@pytest.mark.parametrize("kind", [*FAMILY, AgentFields], ids=lambda kind: kind.__name__)
def test_each_text_is_free_or_a_key(kind: type[msgspec.Struct]) -> None:
    fields = msgspec.structs.fields(kind)
    texts = {each.name for each in fields if "str" in str(each.type)}
    free = set(TEXTS.get(kind, ()))
    names = {"name"} if kind.__name__ == "ActivateProject" else set[str]()
    assert texts - KEYS - names - {"tools", "delegates"} == free


def test_all_texts_of_an_action_are_replaced_and_nothing_else() -> None:
    assert reworded(SaveFact("a", "b"), str.upper) == SaveFact("a", "B")
    assert reworded(Delegation("a", "b"), str.upper) == Delegation("a", "B")


def test_texts_of_a_new_agent_are_replaced_too() -> None:
    made = CreateAgent("carl", AgentFields(name="Carl", prompt="count", model="m"))
    told = reworded(made, str.upper)
    assert told.fields == AgentFields(name="CARL", prompt="COUNT", model="m")
    assert told.slug == "carl"
