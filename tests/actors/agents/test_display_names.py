"""Agents are called by what people call them, and none passes for another."""

from __future__ import annotations

import pytest

from actors.agents.persona import Persona
from actors.agents.roster import acquainted, apart, groups_of
from actors.config.agents import AgentConfig
from actors.messages.inbound import Address, Inbound
from actors.rules.groups.activation import judge
from actors.rules.groups.routes import RoutingTable, route, routing_table, with_groups


def called(**names: str) -> dict[str, Persona]:
    return {
        name: Persona(name, AgentConfig(display_name=shown))
        for name, shown in names.items()
    }


def table_of(**names: str) -> RoutingTable:
    personas = apart(called(**names))
    return with_groups(routing_table(personas), groups_of(personas))


TABLE = table_of(anna="Eliza", ben="Dr. Ben O'Hara", carl="")


def said(text: str, agent: str = "") -> Inbound:
    return Inbound(
        id="1",
        platform="test",
        platform_id="1",
        address=Address("chat", "room"),
        sender_id="zoe",
        sender_name="Zoe",
        text=text,
        received_at=0.0,
        is_direct=bool(agent),
        agent=agent,
    )


@pytest.mark.parametrize(
    ("text", "answering"),
    [
        ("@Eliza are you there?", ("anna",)),
        ("@anna are you there?", ("anna",)),
        ("/status@eliza", ("anna",)),
        ("and @dr. ben o'hara, @Eliza?", ("ben", "anna")),
        ("@Dr. Ben O'Haras dog", ()),
        ("@Dr. Who?", ()),
        ("Hey Eliza, are you there?", ("anna",)),
        ("ask Eliza", ()),
        ("mail me@Eliza", ()),
        ("Carl?", ("carl",)),
    ],
)
def test_an_agent_hears_the_name_that_people_see(
    text: str, answering: tuple[str, ...]
) -> None:
    assert judge(said(text), TABLE).answering == answering


@pytest.mark.parametrize(
    ("text", "answering"),
    [
        ("@สมศักดิ์ อยู่ไหม", ("anna",)),
        ("@สมศักดิ์, @Zoe\u0301?", ("anna", "ben")),
        ("@zo\u00e9?", ("ben",)),
        ("@หมู", ()),
    ],
)
def test_a_name_with_marks_is_heard_and_no_part_of_another(
    text: str, answering: tuple[str, ...]
) -> None:
    table = table_of(anna="สมศักดิ์", ben="Zo\u00e9", carl="หม")
    assert judge(said(text), table).answering == answering
    heard = route(said("hi", "Zoe\u0301"), table)
    assert getattr(heard, "agents", ()) == ("ben",)


def test_whoever_addresses_an_agent_may_write_either_name() -> None:
    heard = [route(said("hi", agent), TABLE) for agent in ("Eliza", "anna", "ELIZA")]
    assert [getattr(each, "agents", ()) for each in heard] == [("anna",)] * 3


def test_what_people_call_an_agent_is_its_name_unless_told_otherwise() -> None:
    assert [TABLE.shown(x) for x in ("anna", "ben", "carl", "dora", "")] == [
        "Eliza",
        "Dr. Ben O'Hara",
        "carl",
        "dora",
        "",
    ]


@pytest.mark.parametrize("taken", ["Anna", "ANNA", "eliza", "Everyone"])
def test_nobody_passes_for_another_agent_or_a_whole_chat(taken: str) -> None:
    table = table_of(anna="Eliza", eve=taken)
    assert (table.shown("anna"), table.shown("eve")) == ("Eliza", "eve")
    assert table.called.get(taken.casefold(), "anna") == "anna"


def test_however_many_they_are_they_share_one_list_of_all() -> None:
    team = acquainted(called(anna="", ben="", carl=""), TABLE)
    everybody = team["anna"].everybody
    assert everybody == ("anna", "ben", "carl")
    assert all(each.everybody is everybody for each in team.values())
    assert all(each.silent is team["anna"].silent for each in team.values())


@pytest.mark.parametrize(
    ("shown", "told"),
    [("", "anna"), ("Anna", "Anna"), ("Eliza", "anna (people call you Eliza)")],
)
def test_an_agent_is_told_its_name_and_what_people_call_it(
    shown: str, told: str
) -> None:
    assert called(anna=shown)["anna"].known_as == told
