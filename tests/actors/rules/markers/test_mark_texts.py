"""Proves that models are told of their marks, in the grammar in which they are read."""

from __future__ import annotations

from typing import get_args

import pytest
from msgspec.structs import replace

from actors.agents.persona import Persona
from actors.config.agents import UNLESS_TOLD, AgentConfig, MarkerFamily
from actors.config.prompt import ContextConfig, LayerBudgets
from actors.rules.markers import descriptions as mark_texts, tags
from actors.rules.markers.actions import FAMILY
from actors.rules.markers.parser import parse
from actors.rules.markers.tags import Family
from actors.rules.prompt.brief import Brief
from actors.rules.prompt.build import Layer, build

ALL: frozenset[Family] = frozenset(get_args(MarkerFamily))
BRIEF = Brief(
    name="anna", context=ContextConfig(), marks=Persona("anna", AgentConfig()).marks
)


def layers(brief: Brief) -> dict[str, Layer]:
    return {layer.name: layer for layer in build(brief, 100_000).layers}


def told(brief: Brief) -> set[Family]:
    text = layers(brief)["marks"].text
    return {mark.family for mark in mark_texts.MARKS if mark.text in text}


@pytest.mark.parametrize("mark", mark_texts.MARKS, ids=lambda mark: mark.family)
def test_every_example_is_read_as_what_it_explains(mark: mark_texts.MarkText) -> None:
    for example in mark.examples:
        parsed = parse(f"Hello.\n{example}\nBye.", "assistant")
        (action,) = parsed.actions
        assert FAMILY[type(action)] == mark.family
        assert parsed.visible.split() == ["Hello.", "Bye."]
    parsed = parse(mark.text, "assistant")
    assert len(parsed.actions) == len(mark.examples)
    assert not parsed.dropped


def test_each_mark_of_each_family_that_comes_to_something_has_an_example() -> None:
    named = {tag.name for tag in (*tags.BLOCK_TAGS, *tags.LINE_MARKS)}
    elsewhere = {"conductor", "delegation", "files"}
    wanted = {x for x in named if tags.FAMILY_OF[x] not in elsewhere}
    examples = "\n".join(x for mark in mark_texts.MARKS for x in mark.examples)
    assert {name for name in wanted if name in examples} == wanted
    assert {mark.family for mark in mark_texts.MARKS} == set(tags.FAMILIES) - elsewhere


def test_what_is_told_unless_the_settings_say_otherwise_is_short() -> None:
    layer = layers(BRIEF)["marks"]
    assert told(BRIEF) == set(UNLESS_TOLD) - {"delegation", "project", "skill"}
    assert 100 < layer.tokens <= 200
    assert not layer.is_fresh
    assert layer == layers(replace(BRIEF, words="other words"))["marks"]


def test_only_what_the_agent_may_use_is_told() -> None:
    assert told(replace(BRIEF, marks=frozenset({"forget", "delegation"}))) == {"forget"}
    assert "marks" not in layers(replace(BRIEF, marks=frozenset({"delegation"})))
    assert told(replace(BRIEF, marks=ALL)) == {x.family for x in mark_texts.MARKS}


def test_what_a_tool_does_needs_no_mark() -> None:
    assert "memory" not in told(replace(BRIEF, tools=frozenset({"save_memory"})))


def test_a_colleague_is_told_of_its_memory_alone() -> None:
    assert told(replace(BRIEF, mode="collaboration")) == {"memory"}
    assert told(replace(BRIEF, mode="autonomous")) == told(BRIEF)


def test_later_times_wait_for_their_words_where_the_settings_say_so() -> None:
    gated = replace(BRIEF, context=ContextConfig(gates=("scheduling",)))
    shut = replace(gated, words="hello")
    assert told(shut) == told(BRIEF) - mark_texts.LATER
    assert "gate 'scheduling'" in layers(shut)["marks.scheduling"].why
    assert told(replace(gated, words="remind me tomorrow")) == told(BRIEF)


def test_what_is_over_the_budget_is_left_out_whole() -> None:
    budgets = LayerBudgets(marks=120)
    layer = layers(replace(BRIEF, context=ContextConfig(budgets=budgets)))["marks"]
    assert layer.tokens <= 120
    kept = [mark.text for mark in mark_texts.MARKS if mark.text in layer.text]
    assert layer.text == "\n".join((mark_texts.TITLE, *kept))
    assert "left out for its budget" in layer.why


def test_an_agent_without_a_memory_is_told_of_no_marks_for_it() -> None:
    persona = Persona("anna", AgentConfig())
    assert persona.marks == set(UNLESS_TOLD) - {"project", "skill"}
    able = Persona("anna", AgentConfig(skills=("*",)), has_projects=True)
    assert able.marks == set(UNLESS_TOLD)
    without = Persona("anna", AgentConfig(), remembers=False)
    assert without.marks == persona.marks - tags.REMEMBERING
