"""Proves which messages are commands, and that paths and all else are words."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.commands.registry import (
    ADMIN,
    COMMANDS,
    Rights,
    group_command,
    may_use,
    skill_named,
)
from actors.config.access import Who
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


def test_each_listed_command_is_understood_as_itself() -> None:
    read = {name: parse_command(f"/{name} 3F") for name in COMMANDS}
    assert read == {
        **{name: OtherCommand(name, "3F") for name in COMMANDS},
        "approve": ApprovalDecision("3F", is_approved=True),
        "deny": ApprovalDecision("3F", is_approved=False),
        "stop": Stop(),
    }


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


EVERYBODY = "sam ada eve"
"""Somebody, an administrator of the chat, and an owner."""

RIGHTS = {  # in a direct chat, and in a group
    "help": (EVERYBODY, EVERYBODY),
    "start": (EVERYBODY, EVERYBODY),
    "stop": (EVERYBODY, EVERYBODY),
    "new": (EVERYBODY, "eve"),
    "clear": (EVERYBODY, "eve"),
    "forget": (EVERYBODY, "eve"),
    "memory": (EVERYBODY, EVERYBODY),
    "model": (EVERYBODY, "eve"),
    "models": (EVERYBODY, "eve"),
    "language": (EVERYBODY, EVERYBODY),
    "who": (EVERYBODY, EVERYBODY),
    "skills": (EVERYBODY, EVERYBODY),
    "whoami": (EVERYBODY, EVERYBODY),
    "link": (EVERYBODY, EVERYBODY),
    "unlink": (EVERYBODY, EVERYBODY),
    "tasks": (EVERYBODY, EVERYBODY),
    "status": (EVERYBODY, EVERYBODY),
    "cost": ("eve", "eve"),
    "queue": (EVERYBODY, "ada eve"),
    "pair": ("eve", "eve"),
    "approve": (EVERYBODY, EVERYBODY),
    "deny": (EVERYBODY, EVERYBODY),
}


def those_who_may(word: str, rights: Rights, *, is_direct: bool) -> str:
    who = {
        name: msgspec.structs.replace(said(is_direct=is_direct, sender=name), roles=has)
        for name, has in (("sam", ()), ("ada", (ADMIN,)), ("eve", ()))
    }
    return " ".join(
        name for name, it in who.items() if may_use(word, it, OWNERS, rights)
    )


@pytest.mark.parametrize("word", COMMANDS)
def test_who_may_use_each_command_by_default(word: str) -> None:
    may = (
        those_who_may(word, NO_RIGHTS, is_direct=True),
        those_who_may(word, NO_RIGHTS, is_direct=False),
    )
    assert may == RIGHTS[word]


FIXED = {"help", "stop", "pair", "approve", "deny"}


@pytest.mark.parametrize("word", COMMANDS)
@pytest.mark.parametrize(
    ("who", "may"),
    [("nobody", ""), ("everyone", EVERYBODY), ("owners", "eve"), ("admins", "ada eve")],
)
def test_the_settings_decide_about_each_command_but_the_fixed_ones(
    word: str, who: Who, may: str
) -> None:
    direct, in_group = RIGHTS[word] if word in FIXED else (may, may)
    chosen: tuple[Rights, ...] = (
        ({word: who}, {}),
        ({word: "everyone"}, {word: who}),
    )
    for rights in chosen:
        assert those_who_may(word, rights, is_direct=False) == in_group
    assert those_who_may(word, ({word: who}, {}), is_direct=True) == direct


GENERAL = {
    *("help", "start", "language", "who", "whoami", "link", "unlink", "tasks", "cost"),
    "pair",
}
OF_THE_SESSION = {"stop", "approve", "deny"}


@pytest.mark.parametrize("word", COMMANDS)
def test_whom_a_command_of_a_group_is_about(word: str) -> None:
    scope = "company" if word in GENERAL else "agent"
    is_ours = word not in OF_THE_SESSION
    assert group_command(said(f"/{word}")) == (scope if is_ours else "")
    assert group_command(said(f"/{word}@anna")) == ""
    by_program = msgspec.structs.replace(said(f"/{word}"), is_bot=True)
    assert group_command(by_program) == ""


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
