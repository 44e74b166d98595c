"""Proves what each mark means, in which order it counts, and what is dropped."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from actors.rules.markers import actions, tags
from actors.rules.markers.actions import Action, AgentFields
from actors.rules.markers.parser import MAX_ACTIONS, MAX_REPORTED, ParserRules, parse
from tests.actors.rules.markers.test_sanitizer import texts

LONG = "x" * 5000


def one(text: str) -> Action | str:
    parsed = parse(text, "assistant")
    if parsed.actions:
        (action,) = parsed.actions
        return action
    return parsed.dropped[0].reason


@pytest.mark.parametrize(
    ("text", "action"),
    [
        (
            "[MEMORY:Sticky] tea\nonly [/MEMORY]",
            actions.SaveFact("sticky", "tea\nonly"),
        ),
        ("[memory: a.b-c ] x [/memory]", actions.SaveFact("a.b-c", "x")),
        ("[STATE:Key] v [/STATE]", actions.SetAgentState("Key", "v")),
        ("SCHEDULE: a | tomorrow", actions.Schedule("a", "tomorrow")),
        ("SCHEDULE: a | b | Daily", actions.Schedule("a", "b", "daily")),
        ("**SCHEDULE:** a | b |", actions.Schedule("a", "b")),
        ("- CANCEL_TASK: 12ab", actions.CancelTask("12ab")),
        (
            "SCHEDULE_ACTION: a | b | c",
            actions.Schedule("a", "b", "c", is_action=True),
        ),
        ("UPDATE_TASK: 1 | | tomorrow", actions.UpdateTask("1", "", "tomorrow")),
        ("UPDATE_TASK: 1|a|b|C", actions.UpdateTask("1", "a", "b", "c")),
        (
            "REWARD: +1|cooking|salt | late",
            actions.AddReward(1, "cooking", "salt | late"),
        ),
        ("REWARD: -1|a|b", actions.AddReward(-1, "a", "b")),
        ("REWARD: 0|a|b", actions.AddReward(0, "a", "b")),
        ("LESSON: a|b", actions.AddLesson("a", "b")),
        ("PERSONALITY: dry", actions.SetPersonality("dry")),
        ("LANG_SWITCH: de", actions.SwitchLanguage("de")),
        ("FORGET_CONVERSATION", actions.ForgetConversation()),
        ("`FORGET_CONVERSATION`", "quoted"),
        ("**PURGE_FACTS**", actions.PurgeFacts()),
        ("PURGE_FACTS:", actions.PurgeFacts()),
        ("HEARTBEAT_ADD: disk", actions.AddHeartbeatItem("disk")),
        ("HEARTBEAT_REMOVE: disk", actions.RemoveHeartbeatItem("disk")),
        ("HEARTBEAT_INTERVAL: 15 minutes", actions.SetHeartbeatInterval(15)),
        ("SKILL_IMPROVE: web | wait", actions.ImproveSkill("web", "wait")),
        ("BUG_REPORT: it broke", actions.ReportBug("it broke")),
        ("PROJECT_ACTIVATE: moon", actions.ActivateProject("moon")),
        ("PROJECT_DEACTIVATE", actions.DeactivateProject()),
    ],
)
def test_each_mark_becomes_an_action(text: str, action: Action | str) -> None:
    assert one(text) == action


@pytest.mark.parametrize(
    ("text", "action"),
    [
        (
            '[CREATE_AGENT]{"name": "Bo B.", "tools": ["a"]}[/CREATE_AGENT]',
            actions.CreateAgent("bo-b", AgentFields(name="Bo B.", tools=("a",))),
        ),
        (
            (
                "[CREATE_AGENT]\nname: Bo\nprompt: Be kind.\nNote: so.\ntools: a, b\n"
                "[/CREATE_AGENT]"
            ),
            actions.CreateAgent(
                "bo",
                AgentFields(name="Bo", prompt="Be kind.\nNote: so.", tools=("a", "b")),
            ),
        ),
        (
            "[UPDATE_AGENT:bo]model: large[/UPDATE_AGENT]",
            actions.UpdateAgent("bo", AgentFields(model="large")),
        ),
        (
            "[CREATE_CRON]\nschedule: every 2h\nprompt: look\n[/CREATE_CRON]",
            actions.CreateCron("every 2h", "look"),
        ),
        (
            "[CREATE_HEARTBEAT]\nprompt: look\nminutes: 5\n[/CREATE_HEARTBEAT]",
            actions.CreateHeartbeat("look", 5),
        ),
        (
            "[CREATE_CLIENT]\n- **Name**: Zoe\n- Email: z@x.org\n[/CREATE_CLIENT]",
            actions.CreateClient("Zoe", "z@x.org"),
        ),
    ],
)
def test_what_a_conductor_writes_becomes_an_action(text: str, action: Action) -> None:
    assert one(text) == action


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[MEMORY:a] x", "unclosed"),
        ("[MEMORY:a] [/MEMORY]", "empty"),
        ("[MEMORY:a b] x [/MEMORY]", "bad_name"),
        ("[MEMORY:a] [DELEGATE:b] x [/MEMORY]", "nested"),
        (f"[MEMORY:a] {LONG} [/MEMORY]", "too_long"),
        (f"HEARTBEAT_ADD: {LONG}", "too_long"),
        ("REWARD: 5|a|b", "bad_value"),
        ("SCHEDULE: | b", "empty"),
        ("SKILL_IMPROVE: a", "bad_parts"),
        ("PURGE_FACTS: all", "bad_parts"),
        ("HEARTBEAT_INTERVAL: 0", "bad_value"),
        ("HEARTBEAT_INTERVAL: soon", "bad_value"),
        (f"LANG_SWITCH: {'x' * 65}", "bad_value"),
        ("UPDATE_TASK: 1 | | |", "empty"),
        ("[CREATE_AGENT] words [/CREATE_AGENT]", "bad_body"),
        ("[CREATE_AGENT] age: 3 [/CREATE_AGENT]", "bad_body"),
        ("[CREATE_AGENT] role: x [/CREATE_AGENT]", "bad_name"),
        ("[CREATE_AGENT]name: a\nname: b[/CREATE_AGENT]", "bad_body"),
        ('[CREATE_AGENT]{"name": [[/CREATE_AGENT]', "bad_body"),
        ("[UPDATE_AGENT]model: x[/UPDATE_AGENT]", "bad_name"),
        ("[CREATE_CRON]prompt: x[/CREATE_CRON]", "bad_body"),
        ("[CREATE_AGENT]name: x", "unclosed"),
        ("`[MEMORY:a] x [/MEMORY]`", "quoted"),
        ("```\n[DELEGATE:ben] x [/DELEGATE]\n```", "quoted"),
        ("```\nhow\n[MEMORY:a] x [/MEMORY]\n```", "quoted"),
        ("```\nSCHEDULE: a | b\n```", "quoted"),
        ("> SCHEDULE: a | b", "quoted"),
    ],
)
def test_what_is_not_well_formed_is_dropped(text: str, reason: str) -> None:
    parsed = parse(text, "assistant")
    assert parsed.actions == ()
    assert parsed.dropped[0].reason == reason


def test_actions_come_in_the_order_in_which_they_are_carried_out() -> None:
    text = (
        "[DELEGATE:ben] x [/DELEGATE]\nFORGET_CONVERSATION\nSCHEDULE: a | b\n"
        "[CREATE_CLIENT]name: z[/CREATE_CLIENT]\nPURGE_FACTS\n[STATE:k] v [/STATE]\n"
        "LESSON: a | b\n[MEMORY:a] b [/MEMORY]\nDone."
    )
    parsed = parse(text, "assistant")
    assert [type(each).__name__ for each in parsed.actions] == [
        "PurgeFacts",
        "SetAgentState",
        "AddLesson",
        "SaveFact",
        "CreateClient",
        "ForgetConversation",
        "Schedule",
        "Delegation",
    ]
    assert parsed.visible == "Done."
    assert len(parsed.delegations) == 1
    assert len(parsed.others) == 7


def test_what_an_agent_may_not_do_is_hidden_dropped_and_told() -> None:
    egress = ParserRules(families=frozenset({"memory"}))
    text = (
        "Hi.\nPURGE_FACTS\n[CREATE_AGENT]name: b[/CREATE_AGENT]\n[STATE:a] b [/STATE]"
    )
    parsed = parse(text, "assistant", egress)
    assert (parsed.visible, parsed.actions) == ("Hi.", ())
    assert [each.reason for each in parsed.dropped] == ["not_allowed"] * 3
    assert parsed.notice == (
        "PURGE_FACTS was not carried out: this agent may not do that.\n"
        "CREATE_AGENT was not carried out: this agent may not do that."
    )


def test_actions_are_bounded_and_the_rest_is_counted() -> None:
    parsed = parse("LESSON: a | b\n" * (MAX_ACTIONS + 40), "assistant")
    assert len(parsed.actions) == MAX_ACTIONS
    assert len(parsed.dropped) == MAX_REPORTED
    assert sum(count for _, _, count in parsed.tally()) == MAX_ACTIONS + 40


@given(texts, st.sets(st.sampled_from(tags.FAMILIES)))
def test_all_families_are_hidden_whoever_may_use_them(
    text: str, families: set[tags.Family]
) -> None:
    parsed = parse(text, "assistant", ParserRules(families=frozenset(families)))
    assert parsed.visible == parse(text, "assistant").visible
    assert {actions.FAMILY[type(each)] for each in parsed.actions} <= families
    ranks = [actions.rank(each) for each in parsed.actions]
    assert ranks == sorted(ranks)


@given(texts)
def test_quoted_by_a_tool_nothing_is_an_action(text: str) -> None:
    assert parse(tags.defuse(text), "assistant").actions == ()


def test_every_name_and_every_action_has_a_family() -> None:
    assert set(tags.FAMILY_OF.values()) == set(tags.FAMILIES)
    assert set(actions.FAMILY.values()) == set(tags.FAMILIES)
