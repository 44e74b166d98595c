"""Proves which messages are commands, and that paths and all else are words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.commands.registry import COMMANDS, Rights, may_use, skill_named
from actors.messages.commands import (
    ApprovalDecision,
    Command,
    OtherCommand,
    PlainText,
    Stop,
    parse_command,
)
from actors.messages.inbound import Address, Inbound


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/stop", Stop()),
        ("/STOP", Stop()),
        ("/stop now", Stop()),
        ("/stop\nplease", Stop()),
        ("/Stop@Anna", Stop("Anna")),
        ("/stop@anna-2 now", Stop("anna-2")),
        ("/help", OtherCommand("help")),
        ("/help@ben me", OtherCommand("help", "me", "ben")),
        ("/approve 3f", ApprovalDecision("3F", is_approved=True)),
        (
            "/approve  3F  always",
            ApprovalDecision("3F", is_approved=True, is_lasting=True),
        ),
        ("/approve", ApprovalDecision("", is_approved=True)),
        ("/approve always", ApprovalDecision("", is_approved=True, is_lasting=True)),
        ("/deny@anna 3F", ApprovalDecision("3F", is_approved=False, agent="anna")),
        ("/deny always", ApprovalDecision("ALWAYS", is_approved=False)),
        ("@anna /help", OtherCommand("help", agent="anna")),
        ("@anna: /help me", OtherCommand("help", "me", "anna")),
        ("@anna /help@ben", OtherCommand("help", "", "ben")),
        (" @anna-2, /stop all", Stop("anna-2", is_all=True)),
    ],
)
def test_known_commands_are_found(text: str, command: Command) -> None:
    assert parse_command(text) == command


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "//",
        "/ stop",
        " /stop",
        "stop",
        "/usr/bin",
        "/etc/x is full",
        "/1",
        "/é",
        "/stop@",
        "/stop@a@b",
        "/stop,",
        "@anna please /help",
        "@anna/help",
        "@anna @ben /help",
        "/\N{LATIN SMALL LETTER LONG S}top",
        "/" + "a" * 33,
        "see /stop",
    ],
)
def test_everything_else_is_words(text: str) -> None:
    assert parse_command(text) == PlainText()


@given(st.text() | st.text().map("/{}".format))
def test_only_a_slash_and_a_letter_can_be_a_command(text: str) -> None:
    if not isinstance(parse_command(text), PlainText):
        assert text[0] == "/"
        assert text[1].isascii()
        assert text[1].isalpha()


@given(st.from_regex(r"/[A-Za-z]{1,8}", fullmatch=True))
def test_a_lone_command_word_is_never_for_a_model(text: str) -> None:
    assert not isinstance(parse_command(text), PlainText)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_listed_command_is_understood(name: str) -> None:
    assert not isinstance(parse_command(f"/{name}"), PlainText)


def test_a_decision_about_two_things_is_none() -> None:
    assert parse_command("/deny 3F 4G") == OtherCommand("deny", "3F 4G")


def said(
    text: str = "/clear", *, is_direct: bool = True, sender: str = "sam"
) -> Inbound:
    return Inbound(
        id="1",
        platform="cli",
        platform_id="1",
        address=Address("cli", "kitchen"),
        sender_id=sender,
        sender_name="Sam",
        text=text,
        received_at=0.0,
        is_direct=is_direct,
    )


NO_RIGHTS: Rights = ({}, {})
OWNERS = frozenset({"cli/eve"})


@pytest.mark.parametrize(
    ("word", "chat", "allowed"),
    [
        ("clear", "direct", "sam eve"),
        ("clear", "group", "eve"),
        ("cost", "direct", "eve"),
        ("status", "group", "sam eve"),
        ("help", "group", "sam eve"),
    ],
)
def test_usual_rights(word: str, chat: str, allowed: str) -> None:
    for sender in ("sam", "eve"):
        inbound = said(is_direct=chat == "direct", sender=sender)
        may = may_use(word, inbound, OWNERS, NO_RIGHTS)
        assert may is (sender in allowed.split())


def test_the_settings_change_who_may_use_what() -> None:
    rights: Rights = ({"cost": "everyone", "who": "nobody"}, {"clear": "everyone"})
    assert may_use("cost", said(), OWNERS, rights)
    assert not may_use("who", said(sender="eve"), OWNERS, rights)
    assert may_use("clear", said(is_direct=False), OWNERS, rights)
    assert may_use("stop", said(), OWNERS, rights)


def test_a_general_setting_holds_in_groups_too_unless_they_have_their_own() -> None:
    rights: Rights = ({"clear": "everyone", "model": "nobody"}, {"model": "owners"})
    assert may_use("clear", said(is_direct=False), OWNERS, rights)
    assert may_use("model", said(is_direct=False, sender="eve"), OWNERS, rights)


def test_a_skill_is_asked_for_by_its_name() -> None:
    skills = ("weekly-report", "help", "Ship It")
    assert skill_named("/weekly_report for May", skills) == "weekly-report"
    assert skill_named("/weekly-report", skills) == "weekly-report"
    assert skill_named("/ship_it", skills) == "Ship It"
    assert skill_named("/help", skills) == ""  # the runtime's own comes first
    assert skill_named("/other", skills) == ""
    assert skill_named("weekly-report", skills) == ""
