"""Proves which messages are commands, and that paths and all else are words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.rules.commands import (
    COMMANDS,
    Command,
    Decision,
    Help,
    Stop,
    UnknownCommand,
    Words,
    help_text,
    parse_command,
)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/stop", Stop()),
        ("/STOP", Stop()),
        ("/stop now", Stop()),
        ("/stop\nplease", Stop()),
        ("/Stop@Anna", Stop("Anna")),
        ("/stop@anna-2 now", Stop("anna-2")),
        ("/help", Help()),
        ("/help@ben me", Help("ben")),
        ("/approve 3f", Decision("3F", is_approved=True)),
        ("/approve  3F  always", Decision("3F", is_approved=True, is_lasting=True)),
        ("/approve", Decision("", is_approved=True)),
        ("/approve always", Decision("", is_approved=True, is_lasting=True)),
        ("/deny@anna 3F", Decision("3F", is_approved=False, agent="anna")),
        ("/deny always", Decision("ALWAYS", is_approved=False)),
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
        "/\N{LATIN SMALL LETTER LONG S}top",
        "/" + "a" * 33,
        "see /stop",
    ],
)
def test_everything_else_is_words(text: str) -> None:
    assert parse_command(text) == Words()


def test_an_unknown_command_gets_a_line_that_helps() -> None:
    assert parse_command("/Stpo@ben x") == UnknownCommand(
        "stpo",
        "There is no command /stpo. Did you mean /stop? /help lists all commands.",
        "ben",
    )


def test_an_unknown_command_like_no_other_points_to_the_list() -> None:
    command = parse_command("/zzz")
    assert isinstance(command, UnknownCommand)
    assert command.text == "There is no command /zzz. /help lists all commands."


@given(st.text() | st.text().map("/{}".format))
def test_only_a_slash_and_a_letter_can_be_a_command(text: str) -> None:
    if not isinstance(parse_command(text), Words):
        assert text[0] == "/"
        assert text[1].isascii()
        assert text[1].isalpha()


@given(st.from_regex(r"/[A-Za-z]{1,8}", fullmatch=True))
def test_a_lone_command_word_is_never_for_a_model(text: str) -> None:
    assert not isinstance(parse_command(text), Words)


def test_the_list_names_each_command() -> None:
    lines = help_text().splitlines()
    assert [line.split(" ")[0] for line in lines] == [f"/{name}" for name in COMMANDS]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_listed_command_is_understood(name: str) -> None:
    assert not isinstance(parse_command(f"/{name}"), Words | UnknownCommand)
