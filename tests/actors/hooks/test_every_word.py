"""Hooks are asked about every word that is to be read, and what they leave counts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from actors.hooks import asker
from actors.hooks.book import HookBook, about, patience
from actors.hooks.chain import HookPart, HooksOutcome, HookSpec
from actors.inbound.hooks import beside, left, without_words
from actors.journal.plan import AgentPlan, Carried
from actors.messages.inbound import (
    Attachment,
    DelegationChain,
    Inbound,
    Quoted,
    SentFile,
    TranscriptLine,
)
from actors.protocol import Finished
from actors.rules.markers.actions import Delegation, Schedule, SendFile
from actors.rules.markers.parser import ParsedAnswer
from tests.fakes.actors.neighbours import words

WORD = "swordfish"
FILE = SentFile("0" * 64, "picture", "image/png", 7)


def struck(_kind: str, text: str) -> str:
    return text.replace(WORD, "****")


def as_it_is(_kind: str, text: str) -> str:
    return text


def nothing(_kind: str, _text: str) -> str:
    return " "


def finished(**changes: Any) -> tuple[Finished, ParsedAnswer]:
    """Make an answer that says the secret in one place only."""
    said: dict[str, Any] = {"visible": "Here it is.", **changes.pop("said", {})}
    carried = Carried(**changes.pop("carried", {}))
    return Finished("raw", carried=carried, **changes), ParsedAnswer(**said)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("task", {"said": {"actions": (Delegation("ben", f"say {WORD}"),)}}),
        ("file", {"said": {"actions": (SendFile("a.png", "", f"my {WORD}"),)}}),
        ("directive", {"said": {"actions": (Schedule(WORD, "in 5m"),)}}),
        ("task", {"delegations": (Delegation("ben", f"say {WORD}"),)}),
        ("task", {"carried": {"plan": AgentPlan(f"look for {WORD}", 5)}}),
        (
            "file",
            {"carried": {"files": (msgspec.structs.replace(FILE, name=WORD),)}},
        ),
        (
            "file",
            {"carried": {"files": (msgspec.structs.replace(FILE, caption=WORD),)}},
        ),
        ("", {"said": {"thought": WORD}}),
        ("", {"said": {"named": (WORD,)}}),
    ],
)
def test_no_part_of_an_answer_keeps_a_word_that_hooks_take_out(
    kind: str, changes: dict[str, Any]
) -> None:
    asked: list[str] = []

    def word(part: str, text: str) -> str:
        if WORD in text:
            asked.append(part)
        return struck(part, text)

    answer, said = finished(**changes)
    result = asker._in_words(answer, said, word)
    assert asked == [kind] * bool(kind)  # thoughts and names are for nobody then
    assert WORD not in repr(result)
    assert result.text == ""
    same = asker._in_words(answer, said, as_it_is)
    assert same.carried == answer.carried
    assert same.delegations == answer.delegations
    assert same.said is not None
    assert (same.said.visible, same.said.actions) == (said.visible, said.actions)


def test_a_plan_of_which_hooks_leave_nothing_is_none() -> None:
    answer, said = finished(carried={"plan": AgentPlan("secret", 5)})
    result = asker._in_words(answer, said, nothing)
    assert result.carried.plan is None


def quoting() -> Inbound:
    return words(
        "the text",
        quoted=Quoted("the quote", "mia"),
        history=(
            TranscriptLine("user", "line one"),
            TranscriptLine("assistant", "line two"),
            TranscriptLine("user", " "),
            TranscriptLine("user", "line one"),
        ),
        attachments=(Attachment("image", "a.png", "image/png"),),
    )


def test_what_a_model_would_read_beside_a_message_is_asked_about_once() -> None:
    assert beside(quoting()) == (
        HookPart("quote", "the quote"),
        HookPart("history", "line one"),
        HookPart("history", "line two"),
    )
    assert beside(words("alone")) == ()


def test_a_message_is_what_hooks_left_of_each_part() -> None:
    passed = HooksOutcome(
        "the ****",
        changed_by=("one", "two"),
        parts={
            HookPart("quote", "the quote"): "q",
            HookPart("history", "line one"): "h",
        },
    )
    found = left(quoting(), passed)
    assert found.quoted == Quoted("q", "mia")
    assert [each.text for each in found.history] == ["h", "line two", " ", "h"]
    assert (found.text, found.changed_by, found.is_hooked) == ("the ****", "two", True)
    assert found.attachments == quoting().attachments


def test_a_message_of_which_only_the_quote_changed_says_what_its_sender_said() -> None:
    passed = HooksOutcome(
        "the text", ("one",), parts={HookPart("quote", "the quote"): "q"}
    )
    found = left(quoting(), passed)
    assert (found.text, found.changed_by) == ("the text", "")


def test_nothing_is_kept_of_what_is_held_back() -> None:
    found = without_words(quoting())
    assert (found.text, found.quoted, found.history, found.attachments) == (
        "",
        None,
        (),
        (),
    )
    assert found.is_hooked


EVENTS = ("message_received", "message_heard", "message_sending", "turn_finished")
NOBODY: set[str] = set()
HOOK = HookSpec(name="all", events=EVENTS)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("inbound", "chosen"),
    [
        (words("hello"), {"receiving", "reading", "hearing"}),
        (words("/stop"), {"reading", "hearing"}),
        (words("hello", is_hooked=True), {"reading", "hearing"}),
        (words("hello", copy_of=4), {"reading", "hearing"}),
        (words("hello", occasion="reminder"), NOBODY),
        (words("hello", chain=DelegationChain(agents=("anna",))), NOBODY),
    ],
)
def test_hooks_are_asked_about_what_people_say_and_once(
    inbound: Inbound, chosen: set[str]
) -> None:
    for book, hooks in ((HookBook((HOOK,)), (HOOK,)), (HookBook(), ())):
        found = {
            "receiving": book.receiving(inbound),
            "reading": book.reading(inbound),
            "hearing": book.hearing(inbound, "anna"),
        }
        assert {name for name, each in found.items() if each} == (
            chosen if hooks else set()
        )
        assert all(each in {(), hooks} for each in found.values())


def test_a_hook_is_asked_about_its_events_connectors_and_agents_alone() -> None:
    here = HookSpec(
        name="here",
        events=("message_sending", "turn_finished"),
        connectors=("fake",),
        agents=("anna",),
    )
    book = HookBook((here, HOOK))
    assert book.sending("fake", "anna") == book.finished("fake", "anna") == (here, HOOK)
    assert book.sending("fake", "ben") == book.finished("other", "anna") == (HOOK,)
    assert HookBook((here,)).hearing(words(), "anna") == ()
    shown = words(wants_drafts=True)
    assert HookBook((here,)).unshown(shown, "ben") == shown
    assert not book.unshown(shown, "anna").wants_drafts


def test_a_hook_is_told_whose_message_it_is() -> None:
    inbound = words(
        agent="ben",
        correlation_id="c1",
        is_direct=False,
        attachments=quoting().attachments,
    )
    told = about(inbound, "anna")
    assert told.agent == "anna"
    assert about(inbound, "").agent == "ben"
    (file,) = told.files
    assert (file.kind, file.name, file.media_type) == ("image", "a.png", "image/png")
    where = inbound.address
    assert (told.connector, told.chat, told.thread) == (
        where.connector,
        where.chat,
        where.thread,
    )
    for name in ("id", "correlation_id", "sender_id", "sender_name", "is_direct"):
        assert getattr(told, name) == getattr(inbound, name)


def test_hooks_are_waited_for_as_long_as_all_of_them_may_take() -> None:
    assert patience(()) == 0
    one = patience((HOOK,))
    assert one > HOOK.timeout
    assert patience((HOOK, HOOK)) == one + HOOK.timeout
