"""Proves which messages have buttons, what they stand for, and how commands read."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given, strategies as st

from actors.messages.deliveries import Delivery
from actors.messages.inbound import Address
from connectors.app.assembly import load_voices
from connectors.chat.accounts import typeable
from connectors.chat.markup.dialect import LONGEST, Button, buttons_of, command_of


def notice(text: str, kind: Literal["notice", "reply"] = "notice") -> Delivery:
    return Delivery(
        id="d",
        correlation_id="c",
        address=Address("slack", "C1"),
        agent="anna",
        text=text,
        kind=kind,
    )


def test_a_question_for_leave_has_two_buttons_for_the_last_id() -> None:
    text = "may I `/approve 9Z or /deny 9Z`? — /approve 3F or /deny 3F, 9 s"
    assert buttons_of(notice(text)) == (Button("approve", "3F"), Button("deny", "3F"))


@pytest.mark.parametrize("language", load_voices().languages)
def test_a_question_has_its_buttons_in_every_language(language: str) -> None:
    say = load_voices().retell(language)
    for english in (
        "🔐 anna wants to run `x` — /approve 3F or /deny 3F, 9 s",
        "🔐 ben wants to run `x`: /deny 9Z — only owners: /approve 3F or /deny 3F, 9 s",
    ):
        asked = notice(say(english))
        assert asked.text != english or language == "en"
        assert [each.label for each in buttons_of(asked)] == ["/approve 3F", "/deny 3F"]
        assert "/deny 9Z" in typeable(asked, asked.text, "!") or "9Z" not in asked.text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("/approve 3F or /deny 3F", "reply"),
        ("/approve 3F or /deny 4F", "notice"),
        ("say /approve 3F", "notice"),
    ],
)
def test_nothing_else_has_buttons(text: str, kind: Literal["notice", "reply"]) -> None:
    assert buttons_of(notice(text, kind)) == ()


@given(st.from_regex(r"\A[A-Z0-9]{1,32}\Z"))
def test_a_button_says_its_own_command_and_no_more_than_platforms_take(
    value: str,
) -> None:
    for word in ("approve", "deny"):
        button = Button(word, value)
        assert command_of(button.says) == button.label
        assert len(button.says.encode()) <= LONGEST


@given(st.text(max_size=100))
def test_whatever_a_button_says_it_is_one_command_or_none(said: str) -> None:
    command = command_of(said)
    assert command == "" or (command[0] == "/" and "\n" not in command)


@pytest.mark.parametrize("said", ["", "no-prefix", "x y:1", ":1", "a:", "a: ", "ä:1"])
def test_what_is_no_command_stands_for_nothing(said: str) -> None:
    assert command_of(said) == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/help - show this list", "!help - show this list"),
        ("hello; /help lists commands.", "hello; !help lists commands."),
        ("say `/approve 3F` (or /deny 3F)", "say `!approve 3F` (or !deny 3F)"),
        ("/help로 모든 명령을", "!help로 모든 명령을"),
        ("all\n/weekly_report", "all\n!weekly_report"),
        ("within 10 minutes: /link 1A2B", "within 10 minutes: /link 1A2B"),
        ("/link [CODE] - show", "!link [CODE] - show"),
        ("/usr/help and a/help, <x>/help", "/usr/help and a/help, <x>/help"),
        (
            "see https://h/help, /help/me, /helpful",
            "see https://h/help, /help/me, /helpful",
        ),
    ],
)
def test_commands_read_as_they_can_be_typed(text: str, shown: str) -> None:
    assert typeable(notice(text), text, "!") == shown
    assert typeable(notice(text, "reply"), text, "!") == text
