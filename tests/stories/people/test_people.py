"""Who somebody is: learnt once, chosen by themselves, linked by their word alone."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest
import trio
import trio.testing

from actors import names
from actors.commands.people import NOT_LINKED
from actors.config.access import PeopleConfig
from actors.journal.records import AUDIT
from actors.people import rows as people_rows
from actors.people.identity import LONGEST_PERSONALITY, Person
from actors.people.lookup import ChangePerson, FindPerson
from actors.people.people import HOLDS_FOR
from actors.rules.text.translations import Voices
from runtime.store.rows import StoredEntry
from tests.fakes.company.company import Platform, at_rest, open_company
from tests.fakes.company.desked import Desked
from tests.fakes.store.in_memory import MemoryStore

Clock = trio.testing.MockClock

GERMAN = "Hallo, kannst du mir bitte sagen, wie das Wetter heute ist?"
SPANISH = "Hola, necesito ayuda con mi pedido porque todavía no ha llegado."


def make_cast(**fields: Any) -> Desked:
    return Desked(others=(Platform("other"),), **fields)


async def write(cast: Desked, text: str, sender: str = "zoe", where: str = "") -> str:
    """Write something; give the last answer there."""
    platform = cast.others[0] if where else cast.platform
    platform.write(text, sender=sender, chat=f"with-{sender}")
    await at_rest(cast)
    await trio.sleep(0.1)
    return platform.deliveries[-1].text


async def stored(cast: Desked, account: str = "fake/zoe") -> Person:
    return (await people_rows.read(cast.store, account)).person


async def test_the_first_contact_is_stored_once_with_its_language(
    autojump_clock: Clock,
) -> None:
    cast = make_cast()
    async with open_company(autojump_clock, cast):
        await write(cast, GERMAN)
        first = cast.acquaintances.find("fake/zoe")
        await write(cast, SPANISH)
        await write(cast, SPANISH)
    assert first is not None
    assert not first.is_welcomed
    now = cast.acquaintances.find("fake/zoe")
    assert now is not None
    assert now.is_welcomed
    person = await stored(cast)
    assert (person.language, person.is_welcomed, person.name) == ("de", True, "zoe")
    row = await cast.store.entry("person", "fake/zoe")
    assert row is not None
    assert row.version == 1


class BusyStore(MemoryStore):
    """A disk that has much to read."""

    async def entry(self, kind: str, name: str) -> StoredEntry | None:
        await trio.sleep(0.1)
        return await super().entry(kind, name)


async def test_of_many_newcomers_at_once_each_is_known(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    cast = make_cast(store=BusyStore())
    async with open_company(autojump_clock, cast) as system:
        for number in range(30):
            cast.platform.write(GERMAN, sender=f"p{number}", chat=f"with-{number}")
        await at_rest(cast)
        assert not system.dead_letters.counts
    assert "taken for a stranger" not in caplog.text
    for number in range(30):
        person = cast.acquaintances.find(f"fake/p{number}")
        assert person is not None
        assert person.language == "de"


async def test_one_short_message_decides_nothing_but_several_do(
    autojump_clock: Clock,
) -> None:
    cast = make_cast()
    async with open_company(autojump_clock, cast):
        await write(cast, "hola")
        assert (await stored(cast)).language == ""
        for text in ("necesito ayuda", "por favor", "gracias"):
            await write(cast, text)
    assert (await stored(cast)).language == "es"


async def test_the_platforms_language_is_spoken_until_somebodys_own_is_known(
    autojump_clock: Clock,
) -> None:
    voices = Voices({"es": {"I have no skills here.": "Nada"}, "de": {}})
    cast = make_cast(voices=voices)
    async with open_company(autojump_clock, cast):
        cast.platform.language = "es"
        assert await write(cast, "/skills") == "Nada"
        assert await write(cast, "/language") == (
            "Your language: Español. /language CODE chooses another: de (Deutsch), en"
            " (English), es (Español)"
        )
        cast.platform.language = "fr"
        assert await write(cast, "/skills") == "I have no skills here."
        cast.platform.language = "es"
        await write(cast, "/language en")
        assert await write(cast, "/skills") == "I have no skills here."
        await write(cast, "/language auto")
        await write(cast, GERMAN)
        assert await write(cast, "/skills") == "I have no skills here."
    assert (await stored(cast)).language == "de"


async def test_a_language_without_a_catalogue_is_for_agents_alone(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(voices=Voices({"es": {}}))
    async with open_company(autojump_clock, cast):
        told = await write(cast, "/language italiano")
        assert told == (
            "From now on agents are to speak Italiano with you. My own words, such as"
            " those of /help, are not translated into it; known: en, es"
        )
        assert "I speak Español" in await write(cast, "/language es")
        assert "known: en, es" in await write(cast, "/language klingon")


async def test_a_chosen_language_stays_whatever_is_written(
    autojump_clock: Clock,
) -> None:
    voices = Voices({"ko": {"Your language: {language}": "언어: {language}"}})
    cast = make_cast(voices=voices)
    async with open_company(autojump_clock, cast):
        await write(cast, GERMAN)
        await write(cast, "/language ko")
        await write(cast, GERMAN)
        assert "언어: 한국어" in await write(cast, "/whoami")
    person = await stored(cast)
    assert (person.language, person.is_language_chosen) == ("ko", True)


async def test_a_code_of_one_account_typed_on_another_links_them(
    autojump_clock: Clock,
) -> None:
    cast = make_cast()
    async with open_company(autojump_clock, cast):
        await write(cast, "/language de")
        shown = await write(cast, "/link")
        code = re.search(r"/link (\S+)", shown)
        assert code is not None
        told = await write(cast, f"/link {code[1]}", "zed", "other")
        assert "fake/zoe, other/zed" in told
        assert "is not known" in await write(cast, f"/link {code[1]}", "eve", "other")
    person = await stored(cast, "other/zed")
    assert (person.id, person.language) == ("fake/zoe", "de")
    rows = await cast.store.records(AUDIT)
    assert any(b'"status":"linked"' in row.body for row in rows)


async def test_each_reason_why_no_account_is_linked_or_taken_away(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(approvers=("fake/zoe",))
    async with open_company(autojump_clock, cast):
        shown = await write(cast, "/link")
        code = re.search(r"/link (\S+)", shown)
        assert code is not None
        assert await write(cast, f"/link {code[1]}") == NOT_LINKED["own"]
        await trio.sleep(HOLDS_FOR + 1)
        typed = f"/link {code[1]}"
        assert await write(cast, typed, "zed", "other") == NOT_LINKED["unknown"]
        wrong = "/link AAAA-AAAA"
        told = [await write(cast, wrong, "zed", "other") for _ in range(9)]
        assert told[0] == NOT_LINKED["unknown"]
        assert told[-1] == NOT_LINKED["too_many"]
        same = "/link fake/zoe fake/zoe"
        assert await write(cast, same) == NOT_LINKED["nothing"]
        assert await write(cast, "/unlink") == NOT_LINKED["nothing"]
        assert await write(cast, "/unlink other/nobody") == NOT_LINKED["nothing"]
        await write(cast, "/link fake/zoe other/zed")
        again = "/link fake/zoe other/zed"
        assert await write(cast, again) == NOT_LINKED["nothing"]
    assert (await stored(cast)).aliases == ("other/zed",)
    rows = await cast.store.records(AUDIT)
    assert sum(b'"status":"linked"' in row.body for row in rows) == 1
    assert not any(b'"status":"unlinked"' in row.body for row in rows)


async def test_what_was_linked_can_be_taken_back_over_a_restart(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(approvers=("fake/zoe",))
    async with open_company(autojump_clock, cast):
        await write(cast, "/language es", "zed", "other")
        await write(cast, "/language de")
        await write(cast, "/link fake/zoe other/zed")
    assert (await stored(cast, "other/zed")).id == "fake/zoe"
    cast.restart()
    async with open_company(autojump_clock, cast):
        assert "none of your" in await write(cast, "/unlink fake/zoe", "eve", "other")
        assert "of its own again" in await write(cast, "/unlink", "zed", "other")
    person = await stored(cast, "other/zed")
    assert (person.id, person.language, person.aliases) == ("other/zed", "es", ())
    assert (await stored(cast)).aliases == ()


async def test_a_like_name_is_only_proposed(autojump_clock: Clock) -> None:
    cast = make_cast()
    async with open_company(autojump_clock, cast):
        await write(cast, "hi", "maria lopez")
        await write(cast, "hi", "Maria Lopez", "other")
        told = await write(cast, "/whoami", "Maria Lopez", "other")
        assert "of a name like yours writes on fake" in told
        assert "fake/maria" not in told
    assert (await stored(cast, "other/Maria Lopez")).aliases == ()


async def test_nothing_is_proposed_where_the_settings_do_not_want_it(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(people=PeopleConfig(propose_links=False))
    async with open_company(autojump_clock, cast):
        await write(cast, "hi", "maria lopez")
        await write(cast, "hi", "Maria Lopez", "other")
    assert (await stored(cast, "other/Maria Lopez")).proposals == ()


async def test_nobody_but_an_owner_links_others(autojump_clock: Clock) -> None:
    cast = make_cast()
    async with open_company(autojump_clock, cast):
        told = await write(cast, "/link fake/zoe other/zed", "eve")
    assert told == "Only an owner links the accounts of others."


async def test_a_code_is_never_shown_in_a_group(autojump_clock: Clock) -> None:
    cast = Desked(platform=Platform("group", is_direct=False))
    async with open_company(autojump_clock, cast):
        assert "direct chat" in await write(cast, "/link@anna")


async def test_a_personality_is_kept_and_bounded(autojump_clock: Clock) -> None:
    cast = make_cast()
    async with open_company(autojump_clock, cast) as system:
        people = system.find(names.PEOPLE)
        assert people is not None
        await people.ask(ChangePerson("fake/zoe", personality="x" * 5000), timeout=5)
        found = await people.ask(FindPerson("fake/zoe"), timeout=5)
    assert found.personality == "x" * LONGEST_PERSONALITY
    assert (await stored(cast)).personality == found.personality


async def test_a_personality_holds_no_key(autojump_clock: Clock) -> None:
    cast = make_cast()
    async with open_company(autojump_clock, cast) as system:
        people = system.find(names.PEOPLE)
        assert people is not None
        style = "brief, and my password is hunter22"
        await people.ask(ChangePerson("fake/zoe", personality=style), timeout=5)
    kept = (await stored(cast)).personality
    assert kept == "brief, and my password is [password]"


async def test_a_message_is_logged_without_its_keys(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    cast = make_cast()
    async with open_company(autojump_clock, cast):
        await write(cast, "my password is hunter22, remember it")
    lines = [x.getMessage() for x in caplog.records]
    assert any("message received" in line for line in lines)
    assert "hunter22" not in caplog.text
    assert not any("hunter22" in str(vars(x)) for x in caplog.records)


async def test_a_disk_that_fails_leaves_a_stranger_answered(
    autojump_clock: Clock,
) -> None:
    cast = make_cast()
    cast.store._fails_at = (2,)
    async with open_company(autojump_clock, cast):
        assert await write(cast, "hi") == "anna heard hi"
        await write(cast, "hi")
    assert (await stored(cast)).is_welcomed


class CountingStore(MemoryStore):
    """Counts how often one row was read."""

    reads = 0

    async def entry(self, kind: str, name: str) -> StoredEntry | None:
        self.reads += 1
        return await super().entry(kind, name)


async def test_whose_language_nobody_knows_is_not_read_with_each_message(
    autojump_clock: Clock,
) -> None:
    store = CountingStore()
    cast = make_cast(store=store)
    async with open_company(autojump_clock, cast):
        for _ in range(3):
            await write(cast, "12345")
        reads = store.reads
        for _ in range(3):
            await write(cast, "12345")
    assert store.reads == reads
