"""Proves which messages have buttons, and what a pressed one stands for."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given, strategies as st

from actors.messages.deliveries import Delivery
from actors.messages.inbound import Address
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
