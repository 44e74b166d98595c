"""Proves what an agent remembers, recalls and forgets, and for whom."""

from __future__ import annotations

import pytest
import trio.testing

from actors import names
from actors.config.memory import MemoryConfig
from actors.memory.messages import (
    CountReward,
    Fact,
    FactsUsed,
    Forget,
    KeepFact,
    KeepLog,
    LearnLesson,
    Note,
    RecalledFacts,
    ReviewedNotes,
    SearchMemory,
    SetState,
    Summarise,
)
from actors.memory.review import MOST_NOTES
from runtime.errors import MisuseError, StoreUnavailableError
from runtime.store.facts import FactListing
from tests.fakes.company.company import Cast, open_company
from tests.fakes.memory.memory import ROOM, SAM, ZOE, FakeEmbedder, remembering_bed
from tests.fakes.store.in_memory import MemoryStore

Clock = trio.testing.MockClock

DAY = 86_400.0
BOOKS = ("stars", "trees", "birds", "ships", "towns", "wines", "games", "roads", "art")


def fact(text: str, category: str = "user_preference", scope: str = "") -> KeepFact:
    return KeepFact(category=category, text=text, scope=scope)


def texts(facts: tuple[Fact, ...]) -> list[str]:
    return [each.text for each in facts]


def outcomes(considered: ReviewedNotes) -> list[str]:
    return [each.reason or each.outcome for each in considered.results]


async def test_what_was_told_is_recalled_at_once_and_later_by_its_meaning(
    autojump_clock: Clock,
) -> None:
    embedder = FakeEmbedder(seconds=1.0)
    async with remembering_bed(autojump_clock, embedder=embedder) as bed:
        await bed.remember(fact("Likes green tea with honey"), fact("Has two cats"))
        by_words = await bed.recall("which tea shall I order?", within=1.0)
        assert texts(by_words.relevant) == ["Likes green tea with honey"]
        assert "searched by words only" in by_words.missed
        await trio.sleep(10)
        assert await bed.store.facts.unembedded("bot", embedder.space) == ()
        recalled = await bed.recall("which tea shall I order?", within=10.0)
        assert texts(recalled.relevant) == ["Likes green tea with honey"]
        assert recalled.missed == ""
        assert 0.25 <= recalled.relevant[0].score <= 1.0


async def test_what_one_person_tells_never_reaches_another(
    autojump_clock: Clock,
) -> None:
    everything: tuple[Note, ...] = (
        fact("The safe is behind the mirror", "sticky"),
        fact("The safe opens with the old key", "profile"),
        fact("The safe is heavy"),
        SetState("safe", "open"),
        LearnLesson("safe", "never name the safe"),
        CountReward(1, "safe", "spoke of the safe"),
        Summarise("We spoke about the safe"),
        KeepLog("the safe was opened"),
    )
    question = "what about the safe and the mirror?"
    async with remembering_bed(autojump_clock, embedder=FakeEmbedder()) as bed:
        considered = await bed.remember(*everything)
        assert outcomes(considered) == ["saved"] * len(everything)
        await trio.sleep(10)
        for scopes in ((SAM,), (ROOM,), ("agent",), (SAM, ROOM, "agent")):
            assert await bed.recall(question, *scopes) == RecalledFacts()
        own = await bed.recall(question, ZOE)
        assert all((own.sticky, own.profile, own.states, own.lessons, own.outcomes))
        assert all((own.summaries, own.logs, own.relevant))
        assert texts(own.states) == ["open"]
        assert texts(own.outcomes) == ["+1 spoke of the safe"]


async def test_nothing_is_recalled_without_saying_whose(autojump_clock: Clock) -> None:
    async with remembering_bed(autojump_clock) as bed:
        with pytest.raises(MisuseError):
            await bed.recall("anything at all", "")


async def test_nothing_is_kept_until_it_is_committed(autojump_clock: Clock) -> None:
    async with remembering_bed(autojump_clock) as bed:
        considered = await bed.consider(fact("Likes tea"))
        assert outcomes(considered) == ["saved"]
        assert await bed.store.facts.counts("bot") == {}


async def test_what_is_known_already_is_not_kept_twice(autojump_clock: Clock) -> None:
    async with remembering_bed(autojump_clock) as bed:
        await bed.remember(fact("The user likes green tea with honey"))
        again = await bed.remember(
            fact("User likes the green tea with honey!"),
            fact("The user does not like green tea with honey"),
            fact("The user likes green tea with honey", "sticky"),
            fact("The user likes black coffee"),
            fact("The user likes black coffee"),
        )
        assert outcomes(again) == ["known", "saved", "saved", "saved", "known"]
        assert again.results[0].text == "The user likes green tea with honey"
        other = await bed.remember(
            fact("The user likes green tea with honey"), scope=SAM, readable=(SAM,)
        )
        assert outcomes(other) == ["saved"]


async def test_secrets_and_phone_numbers_are_not_remembered(
    autojump_clock: Clock,
) -> None:
    async with remembering_bed(
        autojump_clock, redact=lambda text: text.replace("hunter2", "[secret]")
    ) as bed:
        await bed.remember(
            fact("Says hunter2 a lot, and uses sk-abcdefghijklmnop1234"),
            SetState("password", "correct horse"),
            KeepLog("Call +49 151 2345 6789 tomorrow"),
        )
        listing = FactListing(agent="bot", scopes=(ZOE,), now=bed.now())
        kept = [row.text for row in await bed.store.facts.listed(listing)]
        assert kept == [
            "Call [phone] tomorrow",
            "[password]",
            "Says [secret] a lot, and uses [key]",
        ]


SHORT = MemoryConfig(max_fact_chars=100)


async def test_notes_that_cannot_be_kept_say_why(autojump_clock: Clock) -> None:
    async with remembering_bed(autojump_clock, config=SHORT) as bed:
        considered = await bed.consider(
            fact("  "),
            fact("x" * 101),
            fact("Likes tea", "gossip"),
            SetState("", "v"),
            LearnLesson("a\nb", "rule"),
            fact("Likes tea", scope=SAM),
            fact("Likes tea", scope="agent"),
            Forget(scopes=(SAM,)),
            Forget(scopes=("agent",)),
            *[fact("Likes tea", scope="agent")] * (MOST_NOTES - 9),
            fact("Likes tea"),
        )
        assert outcomes(considered) == [
            "empty",
            "too_long",
            "bad_category",
            "bad_name",
            "bad_name",
            "other_scope",
            "not_owner",
            "other_scope",
            "not_owner",
            *["not_owner"] * (MOST_NOTES - 9),
            "too_many",
        ]
        assert considered.changes == ()
        assert all(result.text for result in considered.results)


async def test_an_owner_tells_all_chats(autojump_clock: Clock) -> None:
    async with remembering_bed(autojump_clock) as bed:
        note = fact("The shop closes at six", "sticky", "agent")
        await bed.remember(note, is_owner=True)
        assert texts((await bed.recall("hi", SAM, "agent")).sticky) == [note.text]


async def test_a_state_has_its_last_value_and_a_lesson_its_last_wording(
    autojump_clock: Clock,
) -> None:
    async with remembering_bed(autojump_clock) as bed:
        await bed.remember(SetState("mood", "glad"))
        await bed.remember(LearnLesson("mail", "Always answer mails within a day"))
        again = await bed.remember(
            SetState("mood", "glad"),
            SetState("mood", "sad"),
            LearnLesson("mail", "Always answer the mails within a day"),
            LearnLesson("mail", "Sign with the first name"),
        )
        assert outcomes(again) == ["known", "saved", "saved", "saved"]
        recalled = await bed.recall("hi")
        assert [(f.key, f.text) for f in recalled.states] == [("mood", "sad")]
        assert texts(recalled.lessons) == [
            "Sign with the first name",
            "Always answer the mails within a day",
        ]


async def test_forgetting_says_how_much_and_is_for_good(autojump_clock: Clock) -> None:
    async with remembering_bed(autojump_clock, embedder=FakeEmbedder()) as bed:
        await bed.remember(fact("Likes tea"), fact("Has a cat", "sticky"))
        await bed.remember(fact("Likes tea"), scope=SAM, readable=(SAM,))
        forgotten = await bed.remember(Forget(kinds=("fact",)), fact("Likes tea"))
        assert outcomes(forgotten) == ["forgotten", "saved"]
        assert forgotten.results[0].count == 2
        assert texts((await bed.recall("who likes tea here?")).relevant) == [
            "Likes tea"
        ]
        assert (await bed.recall("cat?")).sticky == ()
        assert texts((await bed.recall("who likes tea here?", SAM)).relevant) == [
            "Likes tea"
        ]


async def test_the_least_used_gives_way_and_what_sticks_stays(
    autojump_clock: Clock,
) -> None:
    config = MemoryConfig(max_facts=10)
    async with remembering_bed(autojump_clock, config=config) as bed:
        await bed.remember(fact("Is allergic to nuts", "sticky"))
        for what in BOOKS:
            await bed.remember(fact(f"Owns a book on {what}"))
            await trio.sleep(1)
        shown = await bed.recall("the book on stars")
        bed.memory.tell(FactsUsed(shown.relevant[:1]))
        await trio.sleep(120)
        places = ("Rome", "Oslo", "Lima")
        await bed.remember(*(fact(f"Has seen {place} twice") for place in places))
        listing = FactListing(agent="bot", scopes=(ZOE,), now=bed.now())
        kept = {row.text for row in await bed.store.facts.listed(listing)}
        assert len(kept) == 10
        assert {"Is allergic to nuts", "Owns a book on stars"} <= kept
        assert "Owns a book on trees" not in kept


async def test_each_category_lasts_as_long_as_was_set(autojump_clock: Clock) -> None:
    async with remembering_bed(autojump_clock) as bed:
        await bed.remember(
            fact("Tea one", "sticky"),
            fact("Tea two"),
            fact("Tea three", "project_context"),
            fact("Tea four", "conversation"),
            Summarise("Tea five"),
        )
        await trio.sleep(31 * DAY)
        recalled = await bed.recall("shall we talk about tea?")
        assert texts(recalled.sticky) == ["Tea one"]
        assert texts(recalled.relevant) == ["Tea two"]
        assert (await bed.store.facts.counts("bot")).get(
            ("fact", "conversation")
        ) is None
        await trio.sleep(60 * DAY)
        assert (await bed.recall("shall we talk about tea?")).relevant == ()
        assert b"callboard_facts_expired_total 3.0" in bed.metrics.render()


async def test_what_is_told_again_lasts_anew(autojump_clock: Clock) -> None:
    async with remembering_bed(autojump_clock) as bed:
        await bed.remember(fact("Likes green tea"))
        await trio.sleep(80 * DAY)
        assert outcomes(await bed.remember(fact("Likes green tea"))) == ["known"]
        await trio.sleep(80 * DAY)
        assert texts((await bed.recall("green tea or not?")).relevant) == [
            "Likes green tea"
        ]


async def test_a_recall_answers_in_time_whatever_the_embedder_does(
    autojump_clock: Clock,
) -> None:
    embedder = FakeEmbedder(seconds=500.0)
    async with remembering_bed(autojump_clock, embedder=embedder) as bed:
        await bed.remember(fact("Likes green tea"))
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(bed.recall, "green tea or not?")
        assert trio.current_time() - began <= bed.kit.config.recall_timeout


async def test_a_recall_says_what_it_misses_when_the_store_fails(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    async with remembering_bed(autojump_clock, store=store) as bed:
        await store.aclose()
        recalled = await bed.recall("green tea or not?")
        assert "closed" in recalled.missed
        with pytest.raises(StoreUnavailableError):
            await bed.consider(fact("Likes tea"))


async def test_whoever_nothing_is_known_of_is_looked_up_once(
    autojump_clock: Clock,
) -> None:
    store, embedder = MemoryStore(), FakeEmbedder()
    async with remembering_bed(autojump_clock, store=store, embedder=embedder) as bed:
        assert await bed.recall("green tea or not?", ZOE, "agent") == RecalledFacts()
        await store.aclose()
        assert await bed.recall("green tea or not?", ZOE, "agent") == RecalledFacts()
        assert await bed.recall("green tea or not?", ZOE) == RecalledFacts()
        assert embedder.asked == []
        assert "closed" in (await bed.recall("green tea or not?", SAM)).missed
        await trio.sleep(601)
        assert "closed" in (await bed.recall("green tea or not?", ZOE)).missed
        assert b'_recall_seconds_count{agent="bot",outcome="ok"} 3' in (
            bed.metrics.render()
        )


async def test_what_is_remembered_while_many_ask_is_recalled_from_then_on(
    autojump_clock: Clock,
) -> None:
    async with remembering_bed(autojump_clock) as bed:
        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(bed.recall, "green tea or not?", ZOE, "agent")
            for number, scope in enumerate((ZOE, "agent")):
                note = fact(f"Likes green tea {number}", "sticky", scope)
                await bed.remember(note, is_owner=True)
                recalled = await bed.recall("hi", ZOE, "agent")
                assert len(recalled.sticky) == number + 1
        await bed.remember(Forget(kinds=("fact",)))
        assert len((await bed.recall("hi", ZOE, "agent")).sticky) == 1


async def test_without_memory_none_of_its_actors_are_there(
    autojump_clock: Clock,
) -> None:
    async with open_company(autojump_clock, Cast()) as system:
        assert system.find(names.agent("anna")) is not None
        for name in (names.memory, names.recollections, names.embedding, names.scribe):
            assert system.find(name("anna")) is None


async def test_gates_leave_out_what_no_word_asks_for(autojump_clock: Clock) -> None:
    config = MemoryConfig(keyword_gates=True)
    async with remembering_bed(autojump_clock, config=config) as bed:
        await bed.remember(
            fact("Likes green tea"),
            LearnLesson("tea", "serve it hot"),
            CountReward(1, "tea", "it was good"),
            Summarise("We spoke about tea"),
        )
        plain = await bed.recall("make some green tea")
        assert (plain.relevant, plain.outcomes, plain.summaries) == ((), (), ())
        assert texts(plain.lessons) == ["serve it hot"]
        asking = await bed.recall("remember which green tea I like?")
        assert texts(asking.relevant) == ["Likes green tea"]
        assert texts(asking.summaries) == ["We spoke about tea"]


async def test_more_can_be_looked_up_than_a_prompt_has(autojump_clock: Clock) -> None:
    async with remembering_bed(autojump_clock) as bed:
        for number in range(8):
            await bed.remember(fact(f"Owns tea pot {number} of {number * 11}"))
        asked = SearchMemory(question="tea pot", scopes=(ZOE,), now=bed.now(), limit=6)
        assert len(await bed.memory.ask(asked)) == 6
        assert len((await bed.recall("which tea pots?")).relevant) == 4


async def test_short_questions_search_nothing(autojump_clock: Clock) -> None:
    async with remembering_bed(autojump_clock) as bed:
        await bed.remember(fact("Likes green tea"))
        assert (await bed.recall("[Zoe]: tea?")).relevant == ()
        assert (await bed.recall("[Zoe]: green tea?")).relevant != ()
