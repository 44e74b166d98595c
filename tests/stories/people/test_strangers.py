"""Strangers: not heard, told a code, let in by an owner, and out again."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest
import trio
import trio.testing

from actors import names
from actors.config.access import AccessConfig, AgentAccessConfig
from actors.config.agents import AgentConfig
from actors.journal.records import AUDIT
from actors.messages.deliveries import Delivery
from actors.messages.inbound import ModelRequest
from actors.people import pairing_rows
from actors.people.guests import ReadGuests
from actors.people.pairing_rules import DAY
from tests.fakes.company.company import Platform, Says, at_rest, open_company
from tests.fakes.company.guarded import Guarded

Clock = trio.testing.MockClock

PAIRING = AccessConfig(people="pairing")
WORDS = "what I write is nobody else's business"


def make_cast(access: AccessConfig = PAIRING, **fields: Any) -> Guarded:
    return Guarded(
        access={"fake": access},
        owners=("fake/boss",),
        others=(Platform("other"),),
        **fields,
    )


async def write(cast: Guarded, text: str, sender: str = "eve") -> list[Delivery]:
    """Write something; give what was said in that chat from then on."""
    chat = f"with-{sender}"
    before = len(cast.platform.said(chat))
    cast.platform.write(text, sender=sender, chat=chat)
    await at_rest(cast)
    await trio.sleep(0.1)
    said = [each for each in cast.platform.deliveries if each.address.chat == chat]
    return said[before:]


async def only(cast: Guarded, text: str, sender: str = "eve") -> str:
    [said] = await write(cast, text, sender)
    return said.text


async def code_of(cast: Guarded, sender: str = "eve") -> str:
    found = re.search(r"\b\w{4}-\w{4}\b", await only(cast, WORDS, sender))
    assert found is not None
    return found[0]


async def everything(cast: Guarded) -> str:
    """Give all rows of the store as one text."""
    store = cast.store
    rows: list[bytes] = [each.body for each in await store.unsettled()]
    rows += [each.body for each in await store.records(AUDIT)]
    for kind in (pairing_rows.PAIRING, pairing_rows.GUEST, "person"):
        rows += [each.body for each in await store.entries(kind)]
    return b"\n".join(rows).decode()


async def test_a_stranger_is_let_in_by_an_owner_over_restarts(
    autojump_clock: Clock,
) -> None:
    cast = make_cast()
    async with open_company(autojump_clock, cast):
        code = await code_of(cast)
        assert cast.model.requests == []
    cast.restart()
    async with open_company(autojump_clock, cast):
        assert code in await only(cast, "/pair@anna", "boss")
        told = await only(cast, f"/pair approve {code.lower()}", "boss")
        assert "fake/eve may write" in told
        assert "have been let in" in cast.platform.said("with-eve")[-1]
        assert await only(cast, "hello") == "anna heard hello"
    cast.restart()
    async with open_company(autojump_clock, cast):
        assert await only(cast, "again") == "anna heard again"
        assert "may write no more" in await only(cast, "/pair revoke fake/eve", "boss")
        assert "I do not know you" in await only(cast, "and now?")
    statuses = [row.body for row in await cast.store.records(AUDIT)]
    for status in (b'"let_in"', b'"revoked"', b'"unauthorised"'):
        assert any(status in body for body in statuses)


async def test_the_words_of_a_stranger_are_kept_nowhere(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    cast = make_cast()
    async with open_company(autojump_clock, cast):
        cast.platform.is_direct = False
        cast.platform.write(WORDS, sender="eve")
        cast.platform.is_direct = True
        await code_of(cast)
        assert len(cast.platform.acknowledged) == 2
        assert cast.platform.refused == []
    assert WORDS not in await everything(cast)
    assert WORDS not in caplog.text
    logged = repr([vars(each) for each in caplog.records])
    assert "callboard pairing approve CODE" in logged
    assert not await cast.inbox()


async def test_a_stranger_who_calls_an_agent_in_a_group_is_told_once_what_to_do(
    autojump_clock: Clock,
) -> None:
    cast = make_cast()
    async with open_company(autojump_clock, cast):
        cast.platform.is_direct = False
        assert await write(cast, "hello everybody") == []
        [told] = await write(cast, "@anna hello")
        assert await write(cast, "@anna hello?") == []
        assert "Write to me in a direct chat" in told.text
        assert (told.speaker, told.reply_to) == ("anna", "fake-2")
        await trio.sleep(DAY)
        assert len(await write(cast, "@anna are you there?")) == 1
    assert await cast.store.entries(pairing_rows.PAIRING) == ()
    count = 'callboard_refusals_total{connector="fake",reason="unknown_sender"} 4'
    assert count in cast.metrics.render().decode()


@pytest.mark.parametrize(
    "words", ["Anna, hello", "hey anna can you help?", "@Ms Ann hi"]
)
async def test_a_stranger_who_calls_an_agent_by_its_bare_or_shown_name_is_told_too(
    words: str, autojump_clock: Clock
) -> None:
    cast = make_cast(agents={"anna": AgentConfig(display_name="Ms Ann")})
    async with open_company(autojump_clock, cast):
        cast.platform.is_direct = False
        assert await write(cast, "anna is ill") == []
        [told] = await write(cast, words)
        assert "Write to me in a direct chat" in told.text
        assert told.speaker == "anna"


async def test_who_cannot_be_let_in_by_a_code_is_told_whom_to_ask(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(AccessConfig(denied=("mallory",)))
    async with open_company(autojump_clock, cast):
        [told] = await write(cast, WORDS)
        assert "let you in as fake/eve" in told.text
        assert await write(cast, "hello?") == []
        assert await write(cast, WORDS, "mallory") == []
        cast.platform.is_direct = False
        assert "Ask the operators" in await only(cast, "@anna hello", "yan")
    assert not await cast.inbox()


async def test_settings_may_leave_strangers_without_a_word(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(AccessConfig(tell_strangers=False))
    async with open_company(autojump_clock, cast):
        assert await write(cast, WORDS) == []
        cast.platform.is_direct = False
        assert await write(cast, "@anna hello") == []


async def test_a_flood_of_strangers_is_no_flood_of_hints(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(AccessConfig(codes_per_minute=3))
    async with open_company(autojump_clock, cast):
        for number in range(10):
            cast.platform.write(WORDS, sender=f"eve{number}")
        await at_rest(cast)
        await trio.sleep(1)
    assert len(cast.platform.deliveries) == 3


async def test_commands_of_a_stranger_do_nothing(autojump_clock: Clock) -> None:
    def slow(request: ModelRequest) -> Says:
        return Says(f"{request.agent} is done", after=20.0)

    cast = make_cast(AccessConfig(tell_strangers=False))
    cast.model.talk = slow
    async with open_company(autojump_clock, cast):
        cast.platform.write("work", sender="boss", chat="shared")
        await trio.sleep(1)
        for text in ("/stop", "/approve 3F", "/pair", "/whoami", "/link", "yes"):
            cast.platform.write(text, sender="eve", chat="shared")
        await at_rest(cast)
    assert cast.platform.said("shared") == ["anna: anna is done"]


async def test_only_owners_let_anybody_in(autojump_clock: Clock) -> None:
    cast = make_cast(AccessConfig(people="pairing", allowed=("zoe",)))
    async with open_company(autojump_clock, cast):
        code = await code_of(cast)
        told = await only(cast, f"/pair approve {code}", "zoe")
        assert "for those who run this company" in told
        assert code not in await only(cast, "/help", "zoe")
        assert "I do not" not in await only(cast, "/pair deny AAAA", "boss")
        assert await cast.store.entries(pairing_rows.GUEST) == ()


async def test_wrong_codes_are_limited(autojump_clock: Clock) -> None:
    cast = make_cast()
    async with open_company(autojump_clock, cast):
        code = await code_of(cast)
        for _ in range(5):
            told = await only(cast, "/pair approve 0000-0000", "boss")
            assert "Nobody waits" in told
        told = await only(cast, f"/pair approve {code}", "boss")
        assert "Too many wrong codes" in told
        await trio.sleep(900)
        await trio.sleep(1)
        assert "Nobody waits" in await only(cast, f"/pair approve {code}", "boss")


async def test_who_is_denied_gets_no_other_code(autojump_clock: Clock) -> None:
    cast = make_cast()
    async with open_company(autojump_clock, cast):
        code = await code_of(cast)
        assert "not let in" in await only(cast, f"/pair deny {code}", "boss")
        await trio.sleep(3_600)
        assert await write(cast, "please") == []
    cast.restart()
    async with open_company(autojump_clock, cast):
        assert await write(cast, "please!") == []


async def test_a_thousand_strangers_cost_little(autojump_clock: Clock) -> None:
    cast = make_cast()
    async with open_company(autojump_clock, cast):
        for number in range(1_000):
            cast.platform.write("spam", sender=f"s{number}", chat=f"c{number}")
        await at_rest(cast)
        assert len(cast.platform.deliveries) == PAIRING.codes_per_minute
        assert len(await cast.store.records(AUDIT)) == 60
        await trio.sleep(120)
        for number in range(1_000):
            cast.platform.write("spam", sender=f"t{number}", chat=f"d{number}")
        await at_rest(cast)
        assert len(cast.platform.deliveries) == PAIRING.max_codes
        assert await only(cast, "hello", "boss") == "anna heard hello"
        rows = await cast.store.entries(pairing_rows.PAIRING)
        assert len(rows) == PAIRING.max_codes
        await trio.sleep(700)
        assert await cast.store.entries(pairing_rows.PAIRING) == ()
    assert not cast.reports.of("actor failed")


async def test_the_command_line_lets_somebody_in_beside_a_server(
    autojump_clock: Clock,
) -> None:
    cast = make_cast()
    async with open_company(autojump_clock, cast) as system:
        await code_of(cast)
        [request] = (await pairing_rows.read(cast.store)).requests
        guest = pairing_rows.as_let_in(request, "the command line", 1.0, None)
        told = ("r1", cast.services.keep)
        await cast.store.commit(pairing_rows.as_approved(request, guest, told, 1.0))
        gate = system.find(names.PAIRING)
        assert gate is not None
        for _ in range(2):
            gate.tell(ReadGuests())
            await trio.sleep(1)
        assert "have been let in" in cast.platform.said("with-eve")[-1]
        assert len(cast.platform.said("with-eve")) == 2
        assert await only(cast, "hello") == "anna heard hello"
        await cast.store.commit(
            pairing_rows.as_revoked(
                "fake/eve", "the command line", ("r2", told[1]), 2.0
            )
        )
        gate.tell(ReadGuests())
        await trio.sleep(1)
        assert "I do not know you" in await only(cast, "hello?")


async def test_an_agent_may_be_for_some_people_only(autojump_clock: Clock) -> None:
    agents = {"anna": AgentConfig(), "ops": AgentConfig()}
    rules = (
        AgentAccessConfig(may_use=True, agent="ops", sender="zoe"),
        AgentAccessConfig(may_use=False, agent="ops"),
    )
    cast = make_cast(AccessConfig(people="anyone"), agents=agents, rules=rules)
    async with open_company(autojump_clock, cast):
        assert "You may not use ops here" in await only(cast, "@ops restart it")
        assert await write(cast, "@ops now!") == []  # once a minute is enough
        assert await only(cast, "@ops restart it", "zoe") == "ops heard @ops restart it"
        assert "ops heard" in await only(cast, "@ops hi", "boss")
        cast.platform.is_direct = False
        assert await write(cast, "@ops restart it") == []
        assert "anna heard" in await only(cast, "@ops @anna hi")
    rows = [row.body for row in await cast.store.records(AUDIT)]
    assert sum(b'"not_permitted"' in row for row in rows) == 3


async def test_no_other_agent_is_a_way_round(autojump_clock: Clock) -> None:
    def talk(request: ModelRequest) -> str:
        is_anna = request.agent == "anna"
        return "[DELEGATE:ops]restart it[/DELEGATE]" if is_anna else "done"

    agents = {"anna": AgentConfig(delegates=("ops",)), "ops": AgentConfig()}
    rules = (AgentAccessConfig(may_use=False, agent="ops"),)
    cast = make_cast(AccessConfig(people="anyone"), agents=agents, rules=rules)
    cast.model.talk = talk
    async with open_company(autojump_clock, cast):
        said = await write(cast, "have it restarted")
    assert {each.agent for each in cast.model.requests} == {"anna"}
    assert any("may not use ops" in each.text for each in said)


def test_settings_of_the_story_are_the_defaults() -> None:
    assert (PAIRING.max_codes, PAIRING.codes_per_minute) == (20, 10)


async def test_what_an_owner_says_wrongly_is_explained(autojump_clock: Clock) -> None:
    cast = make_cast()
    async with open_company(autojump_clock, cast):
        assert "Nobody asks" in await only(cast, "/pair list", "boss")
        assert "Say /pair" in await only(cast, "/pair aprove", "boss")
        assert "Nobody waits" in await only(cast, "/pair revoke fake/eve", "boss")
        await code_of(cast)
        cast.platform.is_direct = False
        assert "it names people" in await only(cast, "/pair@anna", "boss")
