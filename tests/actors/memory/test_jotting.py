"""Proves what becomes of lessons, bugs and projects in an answer."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace as changed
from trio.testing import MockClock

from actors.agents.persona import Persona
from actors.config.agents import AgentConfig
from actors.config.memory import MemoryConfig
from actors.memory.kit import MemoryKit, MemoryMetrics
from actors.memory.messages import Forget, SetState
from actors.memory.notebook import MOST_JOTS, NotebookResult, jot, project_text
from actors.messages.inbound import DelegationChain
from actors.people.identity import Person
from actors.rules.markers.actions import (
    Action,
    ActivateProject,
    DeactivateProject,
    ForgetConversation,
    ImproveSkill,
    ReportBug,
)
from actors.rules.markers.outcomes import ActionOutcome
from actors.rules.prompt.brief import PromptMemory
from actors.services import Services
from runtime.telemetry.metrics import Metrics
from tests.fakes.actors.neighbours import make_services, words
from tests.fakes.company.furnished import changed as refurnished
from tests.fakes.memory.memory import remembering_bed
from tests.fakes.memory.notebook import FakeNotebook

BEN = Persona(name="ben", config=AgentConfig())
ON = ActionOutcome(kind="project_on", what="Fair")
OFF = ActionOutcome(kind="project_off")
STATE_OFF = Forget(kinds=("state",), keys=("project",))
KEY = "sk-abcdefghijklmnopqrstuvwx"
LEARN = ImproveSkill("pdf", "Ask first.")


def booked() -> FakeNotebook:
    return FakeNotebook({"ben": ["pdf"]}, {"Fair": "in May", KEY: "x"})


def served(book: FakeNotebook | None, **changes: Any) -> Services:
    kit = MemoryKit(MemoryConfig(), MemoryMetrics(Metrics()))
    usual: dict[str, Any] = {"memory": kit, "approvers": frozenset({"fake/zoe"})}
    return refurnished(make_services(), notebook=book, **{**usual, **changes})


async def jotted(book: FakeNotebook, *wants: Action, **changes: Any) -> NotebookResult:
    return await jot(wants, words(), BEN, served(book, **changes))


async def test_what_is_done_is_told_in_order() -> None:
    book = booked()
    wants = (ReportBug("It hangs."), ForgetConversation(), LEARN)
    found = await jotted(book, *wants)
    assert [(each.kind, each.what) for each in found.outcomes] == [
        ("bug_reported", "It hangs."),
        ("skill_improved", "pdf"),
    ]
    assert (book.bugs, book.lessons) == (["ben: It hangs."], {"pdf": ["Ask first."]})
    assert found.notes == ()


async def test_a_turn_that_is_tried_again_changes_and_tells_the_same() -> None:
    book = booked()
    wants = (ReportBug("It hangs."), LEARN, ActivateProject("fair"))
    assert await jotted(book, *wants) == await jotted(book, *wants)
    assert (book.bugs, book.lessons) == (["ben: It hangs."], {"pdf": ["Ask first."]})


def without_password(text: str) -> str:
    return text.replace("hunter2", "…")


async def test_no_secret_is_written_down_or_told() -> None:
    book = booked()
    wants = (
        ReportBug(f"The key {KEY} is refused"),
        ReportBug("my hunter2 fails"),
        ImproveSkill("pdf", f"Use {KEY}"),
        ActivateProject(KEY),
    )
    found = await jotted(book, *wants, redact=without_password)
    everything = f"{book.bugs}{book.lessons}{found}"
    assert KEY not in everything
    assert "hunter2" not in everything
    assert [each.kind for each in found.outcomes][-1] == "refused"


@pytest.mark.parametrize("who", ["stranger", "agent"])
async def test_a_skill_changes_only_at_an_owners_own_words(who: str) -> None:
    inbound = words(sender_id="sam") if who == "stranger" else words()
    if who == "agent":
        inbound = changed(inbound, chain=DelegationChain(agents=("anna",)))
    book = booked()
    found = await jot((LEARN,), inbound, BEN, served(book))
    assert [each.kind for each in found.outcomes] == ["refused"]
    assert book.lessons == {}


async def test_a_project_is_on_once_memory_has_taken_the_note() -> None:
    found = await jotted(booked(), ActivateProject("FAIR"))
    note = SetState("project", "Fair")
    assert (found.outcomes, found.notes) == ((), (note,))
    assert found.told(note, ActionOutcome(kind="state_set", what="Fair")) == ON
    assert found.told(note, ActionOutcome(kind="known", what="Fair")) == ON
    no = ActionOutcome(kind="refused", what="project", why="full")
    assert found.told(note, no) == no
    others = SetState("mood", "calm")
    assert found.told(others, no) is no
    outcomes = (no, ActionOutcome(kind="state_set", what="Fair"))
    assert found.retold((others, note), outcomes) == (no, ON)


async def test_a_project_is_off_once_memory_has_forgotten_it() -> None:
    found = await jotted(booked(), DeactivateProject())
    assert found.notes == (STATE_OFF,)
    assert found.told(STATE_OFF, ActionOutcome(kind="forgotten", count=1)) == OFF


async def test_of_several_switches_the_last_counts() -> None:
    found = await jotted(booked(), ActivateProject("fair"), DeactivateProject())
    assert found.notes == (STATE_OFF,)
    assert [(each.kind, each.what) for each in found.outcomes] == [("refused", "fair")]


async def test_somebody_with_two_accounts_has_one_project() -> None:
    services = served(booked())
    services.acquaintances.keep("fake/zoe", Person("tg/9", aliases=("fake/zoe",)))
    found = await jot((ActivateProject("fair"),), words(), BEN, services)
    elsewhere = Forget(scopes=("person:fake/zoe",), kinds=("state",), keys=("project",))
    assert found.notes == (elsewhere, SetState("project", "Fair"))
    assert found.told(elsewhere, ActionOutcome(kind="forgotten")) is None
    group = words(is_direct=False)
    found = await jot((ActivateProject("fair"),), group, BEN, services)
    assert found.notes == (SetState("project", "Fair"),)


@pytest.mark.parametrize("states", [0, 5])
async def test_what_nobody_could_remember_is_refused(states: int) -> None:
    kit = MemoryKit(MemoryConfig(states=states), MemoryMetrics(Metrics()))
    memory = None if states else kit
    found = await jotted(booked(), ActivateProject("fair"), memory=memory)
    assert [each.why for each in found.outcomes] == ["there is no memory to keep it in"]
    assert found.notes == ()


async def test_one_answer_may_not_fill_the_disk() -> None:
    book = booked()
    found = await jotted(book, *(ReportBug(f"bug {n}") for n in range(MOST_JOTS + 3)))
    assert len(book.bugs) == MOST_JOTS
    assert [each.kind for each in found.outcomes][MOST_JOTS:] == ["refused"] * 3


async def test_without_a_notebook_all_is_refused() -> None:
    wants = (ReportBug("x"), LEARN, ActivateProject("fair"))
    found = await jot(wants, words(), BEN, served(None))
    assert [each.kind for each in found.outcomes] == ["refused"] * 3
    assert await project_text((PromptMemory("Fair", "project"),), None) == ""


async def test_the_text_of_the_active_project_is_found() -> None:
    services = served(booked())
    states = (
        PromptMemory("calm", "mood"),
        PromptMemory("Fair", "project"),
        PromptMemory("x", "project"),
    )
    assert await project_text(states, services.notebook) == "in May"
    assert (
        await project_text((PromptMemory("../x", "project"),), services.notebook) == ""
    )
    assert await project_text((), services.notebook) == ""


async def test_memory_keeps_the_project_until_it_is_off(
    autojump_clock: MockClock,
) -> None:
    book = booked()
    async with remembering_bed(autojump_clock) as bed:
        for wanted, text in (
            (ActivateProject("fair"), "in May"),
            (ActivateProject("fair"), "in May"),
            (DeactivateProject(), ""),
        ):
            await bed.remember(*(await jotted(book, wanted)).notes)
            states = (await bed.recall("what next?")).states
            assert await project_text(states, book) == text
