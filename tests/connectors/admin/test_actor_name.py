"""Proves that an actor is found by its name or the end of it, and by nothing else."""

from __future__ import annotations

import re

import click
import pytest
from hypothesis import given, strategies as st

from connectors.admin.tree import find_name
from connectors.commands import forget_person, pairing, people
from connectors.commands.common.output import split_chat
from runtime.errors import MisuseError

NAMES = (
    "callboard",
    "callboard/agents",
    "callboard/agents/anna",
    "callboard/agents/anna/agent",
    "callboard/agents/ben",
    "callboard/agents/ben/agent",
    "callboard/store",
)


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        ("anna", "callboard/agents/anna"),
        ("agents/anna", "callboard/agents/anna"),
        ("anna/agent", "callboard/agents/anna/agent"),
        ("callboard/agents/ben", "callboard/agents/ben"),
        ("callboard", "callboard"),
    ],
)
def test_a_name_or_its_end_will_do(wanted: str, meant: str) -> None:
    assert find_name(NAMES, wanted) == meant


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        ("ana", "callboard/agents/anna"),
        ("agnts/ben", "callboard/agents/ben"),
        ("callboard/agent/anna", "callboard/agents/anna"),
        ("stor", "callboard/store"),
        ("nna", "callboard/agents/anna"),
    ],
)
def test_the_nearest_to_a_wrong_name_are_told(wanted: str, near: str) -> None:
    said = rf"^no actor has the name '{wanted}'.*Did you mean (.* or )?{near}\b"
    with pytest.raises(MisuseError, match=said):
        find_name(NAMES, wanted)


def test_of_several_of_one_name_the_agent_is_meant() -> None:
    also = (*NAMES, "callboard/connectors/telegram/anna")
    assert find_name(also, "anna") == "callboard/agents/anna"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("matrix/!room:example.org", ("matrix", "!room:example.org")),
        ("matrix:!room:example.org", ("matrix", "!room:example.org")),
        ("slack", ("slack", "")),
        ("", ("", "")),
    ],
)
def test_a_chat_is_named_with_a_slash_or_a_colon(
    text: str, expected: tuple[str, str]
) -> None:
    assert split_chat(text) == expected


@pytest.mark.parametrize(
    ("text", "account"),
    [
        ("http:sam", "http/sam"),
        ("http/sam:1", "http/sam:1"),
        ("matrix:@sam:example.org", "matrix/@sam:example.org"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        people.unlink,
        people.link,
        pairing.revoke,
        pairing.explain,
        forget_person.command,
    ],
)
def test_an_account_is_named_with_a_slash_or_a_colon(
    command: click.Command, text: str, account: str
) -> None:
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    context = click.Context(command)
    assert {each.type.convert(text, each, context) for each in arguments} == {account}


def test_a_name_like_no_other_is_told_all_the_same() -> None:
    with pytest.raises(MisuseError, match=r"callboard tree shows all\.$"):
        find_name(NAMES, "zzzzzz")


def test_whoever_may_be_meant_is_listed_the_nearest_to_the_root_first() -> None:
    said = (
        "2 actors have a name that ends in 'agent': callboard/agents/anna/agent,"
        " callboard/agents/ben/agent; give more of it"
    )
    with pytest.raises(MisuseError, match=f"^{re.escape(said)}$"):
        find_name(NAMES, "agent")
    for count, end in ((4, "y; give"), (5, "y and 1 more; give"), (9, "and 5 more; g")):
        many = [f"callboard/{number}/x/y" for number in range(count)]
        with pytest.raises(MisuseError, match=f"y': callboard/a/y, .*{end}"):
            find_name([*many, "callboard/a/y"], "y")


def test_a_name_from_outside_is_bounded_and_harmless_on_a_terminal() -> None:
    with pytest.raises(MisuseError) as caught:
        find_name(NAMES, "\x1b[31m" + "x" * 10_000)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 300


@given(st.lists(st.text("ab/", max_size=6), max_size=8), st.text("ab/", min_size=1))
def test_who_is_found_has_that_name_or_nobody_else_ends_so(
    names: list[str], wanted: str
) -> None:
    found = {each for each in names if each == wanted or each.endswith(f"/{wanted}")}
    try:
        meant = find_name(names, wanted)
    except MisuseError:
        assert wanted not in found
    else:
        assert meant in found
        assert meant == wanted or found == {meant}
