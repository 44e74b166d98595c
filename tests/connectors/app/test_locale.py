"""Proves that all the runtime says is there in every language, with what it tells."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

import msgspec
import polib
import pytest

from actors.agents import agent
from actors.approvals.board import ApprovalBoard
from actors.approvals.permissions import ApprovalRefused, ApprovalTerms, OpenApproval
from actors.delegation import loop_guard
from actors.delegation.loop_guard import DelegationLimits
from actors.inbound import hooks, undeliverable as bounce
from actors.journal import answers
from actors.journal.answers import deferral
from actors.journal.outbox import GOES_ON
from actors.messages.commands import ApprovalDecision
from actors.messages.inbound import Address, DelegationChain, Inbound
from actors.messages.state import Postpone
from actors.models import classify, pool as tries
from actors.models.budget import Budget, Limit, refusal
from actors.outbound import drafts as drafting
from actors.outbound.draft_rules import WITHDRAWN
from actors.people import pairing
from actors.protocol import Failed
from actors.rules.groups import access as agent_access
from actors.rules.groups.routes import Unrouted, route, routing_table
from actors.rules.markers import parser as markers
from actors.rules.prompt import untrusted
from actors.session import (
    attempt,
    lifecycle,
    outbox as outgoing,
    progress as signals,
    running_turns,
    session,
    stop as stopping,
)
from actors.turn import machine as turn_rules, request as room, turn
from actors.turn.limits import TokenAllowance
from actors.turn.machine import SEES_NOTHING, ModelFailed
from actors.turn.round import NOBODY, REASONS, TOO_LONG
from connectors.app.assembly import CATALOGUE, LOCALE, load_voices
from connectors.config.shipped import shipped_settings
from runtime.testing import Reports, open_test_system
from tests.support.phrases import fields, said
from tests.support.puppet import Puppet

FOLDER = shipped_settings() / LOCALE
LANGUAGES = ("de", "es", "fr", "ko", "pt")
ASKED = Inbound(
    id="1",
    platform="cli",
    platform_id="1",
    address=Address("cli", "kitchen"),
    sender_id="sam",
    sender_name="Sam",
    text="@annna hi",
    received_at=0.0,
)


def entries(language: str) -> dict[str, polib.POEntry]:
    found = polib.pofile(str(FOLDER / language / CATALOGUE), encoding="utf-8")
    return {each.msgid: each for each in found}


def test_the_languages_are_there() -> None:
    assert load_voices().languages == tuple(sorted((*LANGUAGES, "en")))


def test_a_language_is_read_when_it_is_first_spoken(tmp_path: Path) -> None:
    german, french = (tmp_path / language / CATALOGUE for language in ("de", "fr"))
    for file in (german, french):
        file.parent.mkdir(parents=True)
        file.touch()
    voices = load_voices(folder=tmp_path)
    german.write_text('msgid "Stopped."\nmsgstr "Angehalten."\n', encoding="utf-8")
    assert voices.speak("de")("Stopped.") == "Angehalten."
    french.unlink()
    assert voices.retell("fr")("Stopped.") == "Stopped."


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_is_translated(language: str) -> None:
    catalogue = entries(language)
    assert said() - set(catalogue) == set()
    for entry in catalogue.values():
        assert entry.translated(), entry.msgid
        assert not entry.fuzzy, entry.msgid
        assert fields(entry.msgstr) == fields(entry.msgid), entry.msgid


def test_all_languages_have_the_same_texts() -> None:
    assert len({frozenset(entries(language)) for language in LANGUAGES}) == 1


def constants() -> list[str]:
    texts = [
        running_turns.BUSY,
        running_turns.DROPPED.format(words="my cat"),
        session.NEXT,
        stopping.NOT_ALL,
    ]
    texts += [running_turns.GAVE_UP.format(count=3), outgoing.LOST]
    texts += [GOES_ON.format(count=5)]
    texts += [turn.TIMED_OUT, agent.BROKE, agent.ASK_AGAIN, bounce.SORRY]
    texts += [answers.ASK_AFTER.format(span="2 hours")]
    texts += [turn_rules.ASK_LATER, turn.UNREAD, turn.TAKEN_OVER, turn.EXPIRED]
    texts += [turn.TIMED_OUT, turn.UNREADABLE.format(count=3, why="late")]
    texts += [TokenAllowance(5).used_up, untrusted.REFUSED]
    texts += [hooks.HELD_BACK.format(reason="late"), hooks.HELD_BACK_SILENTLY]
    texts += [turn_rules.fail(ModelFailed("refused", x)).text for x in REASONS.values()]
    texts += [attempt.RESTARTED, signals.STILL_AT_IT, attempt.LOST_THREAD]
    texts += [signals.SINCE.format(span="2 minutes"), WITHDRAWN, drafting.STOPPED]
    texts += [lifecycle.NEW_DAY, lifecycle.LONG_AGO.format(time="2 hours")]
    texts += [room.CUT_SHORT.format(count=12), TOO_LONG]
    texts += [f"{each}: {TOO_LONG}" for each in (turn_rules.TOO_LONG, SEES_NOTHING)]
    texts += [pairing.LET_IN, pairing.CODE.format(code="1234-ABCD", minutes=10)]
    texts += [pairing.HINT.format(account="fake/eve"), pairing.HINT_IN_GROUP]
    texts += [pairing.HINT_OF_PAIRING]
    texts += [agent_access.TEXT.format(agents="ops")]
    return [*texts, NOBODY, *tries.NEUTRAL.values()]


def of_stopping() -> list[str]:
    flags = ("is_stopped", "is_late", "is_busy", "may_hand_on", "has_lanes", "")
    return [
        stopping.stop_notice(**{each: each == flag for each in flags if each})
        for flag in flags
    ]


def waiting(number: int) -> OpenApproval:
    return OpenApproval(
        id=f"{number}F",
        turn_id="t",
        key=str(number),
        agent="anna",
        asker="cli/sam",
        tool="write_file",
        effect="run",
        address=ASKED.address,
    )


async def of_decisions() -> list[str]:
    """Ask the board about what is not open, not theirs, unclear, or said too soon."""
    terms = ApprovalTerms(frozenset({"cli/eve"}), (), 5.0)
    decisions = [
        ApprovalDecision("9Z", is_approved=True),
        ApprovalDecision("", is_approved=True),
    ]
    board = ApprovalBoard()
    found = [board.rule(ASKED, each, 9.0, terms) for each in decisions]
    async with open_test_system(Reports()) as system:
        ref = system.spawn(Puppet())
        board.put(waiting(1), ref, "q1")
        board.note_shown("q1", 8.0)
        found.append(
            board.rule(ASKED, ApprovalDecision("1F", is_approved=True), 9.0, terms)
        )
        owner = msgspec.structs.replace(ASKED, sender_id="eve", text="yes")
        found.append(board.rule(owner, None, 9.0, terms))
        board.put(waiting(2), ref, "q2")
        board.note_shown("q2", 8.0)
        found.append(board.rule(owner, None, 99.0, terms))
    texts = [each.text for each in found if isinstance(each, ApprovalRefused)]
    assert len(texts) == len(found)
    return texts


def of_budgets() -> list[str]:
    budgets = [
        Budget(scope=scope, period=period, hard=Limit(usd=1.0))
        for scope in ("user", "agent", "all")
        for period in ("day", "month")
    ]
    return [refusal(each, 0.0, UTC) for each in budgets]


def of_delegation() -> list[str]:
    limits = DelegationLimits(("anna", "ben", "cleo"), 1, ("ben",))
    late = DelegationChain(agents=("anna",), deadline=1.0)
    long = DelegationChain(agents=("ben", "anna"))
    tries_ = [
        (DelegationChain(), "annna"),
        (DelegationChain(), "zzz"),
        (DelegationChain(), "anna"),
        (DelegationChain(), "cleo"),
        (late, "ben"),
        (long, "ben"),
    ]
    found: list[str] = []
    for chain, target in tries_:
        verdict = loop_guard.may_delegate(chain, "anna", target, limits, 2.0)
        assert isinstance(verdict, loop_guard.DelegationRefused)
        found.append(verdict.text)
    dropped = markers.parse("[DELEGATE:ben]count", "assistant").notice
    assert dropped
    found += [loop_guard.to_pause("anna", "ben").text, loop_guard.spent(16).text]
    return [*found, dropped]


def of_routes() -> list[str]:
    texts: list[str] = []
    for target in ("annna", "zzz"):
        named = msgspec.structs.replace(ASKED, agent=target)
        outcome = route(named, routing_table(("anna", "ben")))
        assert isinstance(outcome, Unrouted)
        texts.append(outcome.text)
    nobody = route(ASKED, routing_table(("anna",)))
    assert isinstance(nobody, Unrouted)
    return [*texts, nobody.text]


def of_failures() -> list[str]:
    put_off = Postpone(attempts=1, due_at=120.0, is_first=True)
    failed = Failed("The model cannot answer now: overloaded", "model")
    [later] = deferral(ASKED, failed, put_off, 0.0).deliveries
    steps = classify.progress(("look", "tell"), 1)
    return [later.text, steps, "The model refused to answer: not available"]


SENTENCES = [
    *constants(),
    *of_stopping(),
    *of_budgets(),
    *of_delegation(),
    *of_routes(),
    *of_failures(),
]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sentence_of_the_runtime_is_told_anew(language: str) -> None:
    retell = load_voices().retell(language)
    english = [each for each in SENTENCES if retell(each) == each]
    assert english == []


@pytest.mark.parametrize("language", LANGUAGES)
async def test_every_word_about_approvals_is_told_anew(language: str) -> None:
    retell = load_voices().retell(language)
    english = [each for each in await of_decisions() if retell(each) == each]
    assert english == []


def test_a_sentence_in_a_sentence_is_told_anew_too() -> None:
    told = load_voices().retell("de")(of_failures()[0])
    assert told == (
        "Das Modell kann gerade nicht antworten: überlastet\n\n"
        "Nächster Versuch in 2 Minuten; /stop beendet das."
    )


def test_a_translation_in_doubt_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "fr" / CATALOGUE
    path.parent.mkdir(parents=True)
    path.write_text(
        'msgid "Stopped."\nmsgstr "Arrêté."\n\n#, fuzzy\nmsgid "Yes"\nmsgstr "Oui"\n',
        encoding="utf-8",
    )
    speak = load_voices("fr", tmp_path).speak()
    assert (speak("Stopped."), speak("Yes")) == ("Arrêté.", "Yes")
