"""What people say to the runtime is answered without a model, by who may say it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

from actors.commands import memory, models
from actors.commands.models import label
from actors.config.access import CommandsConfig
from actors.config.agents import AgentConfig
from actors.config.routes import GroupConfig
from actors.messages.inbound import ModelRequest
from actors.models.catalogue import Catalogue
from actors.models.messages import ListedModel
from actors.models.pool import ModelOffer
from runtime.store.facts import SaveFact
from runtime.store.rows import Commit, Counts, Record
from tests.fakes.company.company import (
    FakeModel,
    Platform,
    Says,
    at_rest,
    open_company,
    until,
)
from tests.fakes.company.desked import Desked
from tests.fakes.store.in_memory import MemoryStore

Clock = trio.testing.MockClock

ZOE = "fake/zoe"
GROUP = partial(Platform, "group", is_direct=False)
AGENTS = {
    "anna": AgentConfig(model="smart", description="the front desk"),
    "ben": AgentConfig(model="smart", description="numbers"),
}


class Choosy(Desked):
    """A company with two models, `smart` on two accounts."""

    further: int = 0
    """Models beside these."""

    def catalogue(self) -> Catalogue:
        offers = [
            ModelOffer(name="smart", model="smart-1", accounts=("work", "home")),
            ModelOffer(name="cheap", model="cheap-1", accounts=("home",)),
        ]
        offers += [
            ModelOffer(name=f"other{number:03}", model="x", accounts=("home",))
            for number in range(self.further)
        ]
        return Catalogue(
            offers={each.name: each for each in offers},
            clients={"work": self.model, "home": self.model},
        )


def make_cast(**fields: Any) -> Choosy:
    given: dict[str, Any] = {"agents": AGENTS, **fields}
    return Choosy(**given)


async def said(clock: Clock, cast: Desked, *texts: str, **how: Any) -> list[str]:
    """Write one after the other; give what was answered, without the agent's name.

    Whatever is answered, if anything: each is done with then.
    """
    async with open_company(clock, cast):
        for text in texts:
            given: dict[str, Any] = {"sender": "zoe", **how}
            cast.platform.write(text, **given)
            await at_rest(cast)
        assert await cast.store.unsettled_keys() == ()
    return [each.text for each in cast.platform.deliveries]


async def test_no_command_asks_a_model(autojump_clock: Clock) -> None:
    cast = make_cast(approvers=(ZOE,))
    words = ["help", "start", "who", "skills", "status", "tasks", "cost", "queue"]
    words += ["whoami", "language", "model", "models", "memory", "link", "new", "clear"]
    answers = await said(autojump_clock, cast, *(f"/{word}" for word in words))
    assert len(answers) == len(words)
    assert all(answers)
    assert cast.model.requests == []


async def test_in_a_group_who_lists_the_people_that_wrote_there(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(platform=GROUP())
    async with open_company(autojump_clock, cast):
        for sender, chat in (("yan", "room"), ("xia", "room"), ("max", "hall")):
            cast.platform.write("hello", sender=sender, chat=chat)
            await trio.sleep(200)
        cast.platform.write("again", sender="yan", chat="room")
        await at_rest(cast)
    cast.restart()
    async with open_company(autojump_clock, cast):
        await trio.sleep(3_600)
        cast.platform.write("/who", sender="zoe")
        await at_rest(cast)
    people = cast.platform.deliveries[-1].text.partition("\n\n")[2]
    assert people.splitlines() == [
        "People here:",
        "yan, last here 1 hour ago",
        "xia, last here 1 hour ago",
    ]


async def test_alone_with_an_agent_who_lists_no_people(autojump_clock: Clock) -> None:
    [listed] = await said(autojump_clock, make_cast(), "/who")
    assert "People here" not in listed


async def test_the_list_shows_what_whoever_asks_may_use(autojump_clock: Clock) -> None:
    [listed] = await said(autojump_clock, make_cast(), "/help")
    words = [line.split()[0] for line in listed.splitlines()]
    assert "/status" in words
    assert "/cost" not in words


async def test_an_unknown_command_gets_a_line_that_helps(
    autojump_clock: Clock,
) -> None:
    answers = await said(autojump_clock, make_cast(), "/stpo", "/zzz", "/deny a b")
    assert answers == [
        "There is no command /stpo. Did you mean /stop? /help lists all commands.",
        "There is no command /zzz. /help lists all commands.",
        "Say which one: /deny and the letters that stand in the question.",
    ]


async def test_agents_are_listed_as_people_call_them(autojump_clock: Clock) -> None:
    agents = {"anna": AgentConfig(display_name="Eliza Smith"), "ben": AgentConfig()}
    listed, greeting = await said(
        autojump_clock, make_cast(agents=agents), "/who", "/start"
    )
    assert listed == "Agents here:\n@Eliza Smith (this is me)\n@ben"
    assert "I am Eliza Smith." in greeting


async def test_what_one_may_not_use_is_refused(autojump_clock: Clock) -> None:
    commands = CommandsConfig(who={"who": "nobody"})
    cast = make_cast(commands=commands)
    assert await said(autojump_clock, cast, "/cost", "/who") == [
        "/cost is for those who run this company.",
        "/who is switched off here.",
    ]


async def test_a_chosen_model_answers_until_it_is_taken_back(
    autojump_clock: Clock,
) -> None:
    cast = make_cast()
    answers = await said(
        autojump_clock, cast, "/model cheap-1", "hi", "/model default", "hi"
    )
    assert answers[0] == (
        "cheap (cheap-1) answers you from now on; /model default goes back."
    )
    assert [each.model for each in cast.model.requests] == ["cheap-1", "smart-1"]


async def test_a_chosen_model_is_remembered_over_a_restart(
    autojump_clock: Clock,
) -> None:
    cast = make_cast()
    await said(autojump_clock, cast, "/model cheap")
    cast.restart()
    await said(autojump_clock, cast, "hi")
    await said(autojump_clock, cast, "hi", sender="sam")
    assert [each.model for each in cast.model.requests] == ["cheap-1", "smart-1"]


async def test_a_provider_is_chosen_with_the_model_it_has(
    autojump_clock: Clock,
) -> None:
    cast = make_cast()
    answers = await said(autojump_clock, cast, "/models home", "/models hme")
    assert answers[0].startswith("smart (smart-1) answers you")
    assert answers[0].endswith("Also there: cheap")
    assert answers[1] == (
        "There is no 'hme' to choose. /models lists what there is. Did you mean home?"
    )


def test_a_model_without_a_name_at_its_provider_is_shown_by_its_own() -> None:
    of = {"smart-1": "smart (smart-1)", "smart": "smart", "": "smart"}
    for model, shown in of.items():
        assert label(ListedModel("smart", model, ())) == shown


async def test_only_what_the_settings_allow_can_be_chosen(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(commands=CommandsConfig(models=("smart",)))
    first, listed = await said(autojump_clock, cast, "/model cheap", "/models")
    assert first.startswith("There is no 'cheap' to choose.")
    assert "cheap" not in listed


@pytest.mark.parametrize("word", ["new", "clear", "forget"])
async def test_a_new_conversation_knows_nothing_of_the_old_one(
    word: str, autojump_clock: Clock
) -> None:
    cast = make_cast()
    await said(autojump_clock, cast, "one", f"/{word}", "two")
    cast.restart()
    await said(autojump_clock, cast, "three")
    asked = [[line.text for line in each.lines] for each in cast.model.requests]
    assert asked[1] == ["two"]
    assert asked[2] == ["two", "anna heard two", "three"]


async def test_in_a_group_only_owners_clear_what_all_have_in_common(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(approvers=("group/eve",), platform=GROUP())
    await said(autojump_clock, cast, "@anna one", "/clear@anna", sender="sam")
    await said(autojump_clock, cast, "/clear@anna", sender="eve")
    assert [each.text for each in cast.platform.deliveries][1:] == [
        "/clear is for those who run this company.",
        "This conversation is cleared.",
    ]


async def test_a_command_for_another_bot_of_the_group_is_left_alone(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(platform=GROUP())
    assert await said(autojump_clock, cast, "/help@other_bot") == []
    # Nor does an agent take it that answers all there is.
    agents = {"anna": AgentConfig(groups=GroupConfig(activation="always"))}
    cast = make_cast(platform=GROUP(), agents=agents)
    assert len(await said(autojump_clock, cast, "hi", "/help@other_bot")) == 1


async def test_costs_are_shown_to_owners_and_by_setting_to_all(
    autojump_clock: Clock,
) -> None:
    commands = CommandsConfig(who={"cost": "everyone"})
    cast = make_cast(commands=commands, approvers=("fake/eve",))
    await said(autojump_clock, cast, "hi", "hi")
    odd = Record(kind="usage", id="odd", owner="anna", part=0, body=b"{}")
    await cast.store.commit(Commit(at=cast.clock.wall(), records=(odd,)))
    [*_, own] = await said(autojump_clock, cast, "/cost")
    [*_, all_] = await said(autojump_clock, cast, "/cost", sender="eve")
    assert own.splitlines()[0] == "You, today: $0.0000 in 2 turns, 10 tokens"
    assert len(own.splitlines()) == 2
    assert all_.splitlines()[0] == "You, today: $0.0000 in 0 turns, 0 tokens"
    assert all_.splitlines()[2] == "All, today: $0.0000 in 2 turns, 10 tokens"


def kept(scope: str, text: str, fact_id: str) -> SaveFact:
    return SaveFact(
        id=fact_id, agent="anna", scope=scope, part=1, kind="fact", text=text
    )


async def remembering() -> MemoryStore:
    """Give a store with two facts of zoe, one of yan and one of a group."""
    store = MemoryStore()
    facts = (
        kept("person:fake/zoe", "has a dog", "AAAAAAAAF2AAAA"),
        kept("person:fake/zoe", "likes tea", "AAAAAAAAF1AAAA"),
        kept("person:fake/yan", "is in debt", "AAAAAAAAF3AAAA"),
        kept("chat:group/room/", "meets on Mondays", "AAAAAAAAF4AAAA"),
    )
    await store.commit(Commit(at=1.0, facts=facts))
    return store


async def test_people_see_what_is_remembered_and_have_it_forgotten(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(store=await remembering())
    texts = "/memory", "/memory forget f1aaaa", "/forget f3aaaa", "/forget facts"
    shown, *answers = await said(autojump_clock, cast, *texts, "/memory")
    assert shown.splitlines()[1:] == ["f1aaaa: likes tea", "f2aaaa: has a dog"]
    assert answers == [
        "Forgotten: 1",
        "There was nothing to forget.",
        "Forgotten: 1",
        "Nothing is remembered.",
    ]


@pytest.mark.parametrize("over", [-1, 0, 1, 3])
async def test_of_long_lists_the_first_are_shown_and_how_many_more_there_are(
    over: int, autojump_clock: Clock
) -> None:
    store = MemoryStore()
    facts = tuple(
        kept(f"person:{ZOE}", f"likes tea {number}", f"F{number:05}AAAAAAAA")
        for number in range(memory.MOST_FACTS + over)
    )
    await store.commit(Commit(at=1.0, facts=facts))
    cast = make_cast(store=store)
    cast.further = models.MOST_LISTED - 2 + over
    of_facts, of_models = await said(autojump_clock, cast, "/memory", "/models")
    for most, text in ((memory.MOST_FACTS, of_facts), (models.MOST_LISTED, of_models)):
        _, *lines = text.splitlines()
        more = [line for line in lines if line.startswith(f"… and {over} more")]
        assert len(more) == (over > 0)
        assert len(lines) - len(more) == min(most, most + over)


async def test_a_group_sees_only_what_is_remembered_of_the_group(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(store=await remembering(), platform=GROUP())
    (shown,) = await said(autojump_clock, cast, "/memory@anna")
    assert shown.splitlines()[1:] == ["f4aaaa: meets on Mondays"]


class SlowStore(MemoryStore):
    """A disk that takes a minute to count."""

    async def counts(self) -> Counts:
        await trio.sleep(60)
        return await super().counts()


async def test_a_slow_disk_does_not_hold_the_conversation_up(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(store=SlowStore(), approvers=("fake/zoe",))
    async with open_company(autojump_clock, cast):
        began = trio.current_time()
        cast.platform.write("/queue", sender="zoe")
        await until(lambda: cast.platform.deliveries)
        assert trio.current_time() - began < 4
    [answer] = cast.platform.deliveries
    assert answer.text.startswith("I could not look that up in time.")


async def test_work_handed_on_is_among_the_tasks(autojump_clock: Clock) -> None:
    def talk(request: ModelRequest) -> Says:
        if request.agent == "anna":
            return Says("[DELEGATE:ben]count the chairs[/DELEGATE]")
        return Says("twelve", after=30.0)

    agents = {**AGENTS, "anna": AgentConfig(model="smart", delegates=("ben",))}
    cast = make_cast(agents=agents, model=FakeModel(talk))
    async with open_company(autojump_clock, cast):
        cast.platform.write("how many chairs?", sender="zoe")
        await until(lambda: cast.platform.deliveries)
        cast.platform.write("/tasks", sender="zoe")
        await at_rest(cast)
        cast.platform.write("/tasks", sender="zoe")
        await at_rest(cast)
    texts = [each.text for each in cast.platform.deliveries]
    assert "ben works for anna: count the chairs" in texts
    assert texts[-1] == "No tasks here; /queue shows what waits for an answer."
