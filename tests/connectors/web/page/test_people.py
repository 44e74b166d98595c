"""Proves that people are let in and forgotten on the page, and answers stopped."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import trio

from actors import names
from actors.messages.inbound import Address
from actors.people import pairing_rows
from actors.people.guests import ReadGuests
from actors.people.identity import Person
from actors.people.pairing_rules import PairingRequest
from actors.people.rows import as_entry
from runtime.sqlite.database import SqliteDatabase
from runtime.store.database import Inspection
from runtime.store.facts import SaveFact
from runtime.store.rows import Commit
from tests.connectors.web.page.test_acting import database, deeds
from tests.support.desk import SUM
from tests.support.panel_bed import CHAT, PanelBed, form_of, open_panels, told

CODE = "K7QM2XBP"
SAM = "cli/sam"
NEVER = "never comes to its end"
"""Asks the script for an answer that no slow machine sees the end of."""


def fact(name: str, text: str) -> SaveFact:
    return SaveFact(
        id=name,
        agent="anna",
        scope=f"person:{SAM}",
        part=0,
        kind="fact",
        category="user_preference",
        text=text,
        words=("tea",),
    )


async def write_people(bed: PanelBed) -> None:
    """Have somebody ask to be let in, and something be remembered of Sam."""
    now = bed.app.clock.wall()
    request = PairingRequest(
        account="cli/nadia",
        name="Nadia",
        address=Address("cli", "dm"),
        code=CODE,
        asked_at=now,
        told_at=now,
        until=now + 600,
    )
    entries = (pairing_rows.as_request(request), as_entry(Person(SAM, "Sam"), 0))
    facts = (fact("one", "likes green tea"), fact("two", "has a cat"))
    await bed.app.store.commit(Commit(at=now, entries=entries, facts=facts))
    pairing = bed.app.system.find(names.PAIRING)
    assert pairing is not None
    pairing.tell(ReadGuests())


async def test_a_stranger_is_let_in_by_a_click_and_who_did_it_is_on_record(
    tmp_path: Path,
) -> None:
    async with open_panels(tmp_path) as bed:
        await write_people(bed)
        await bed.wait_shown("/overview", "Nadia")
        shown = await bed.show("/people")
        assert "K7QM-2XBP" in shown
        form = form_of(shown, "/people/approve")
        await bed.client.post("/people/approve", data=form | {"code": "none"})
        assert "nobody waits under this code" in told(await bed.show("/people"))
        german, wrong = {"accept-language": "de"}, form | {"code": "none"}
        await bed.client.post("/people/approve", data=wrong, headers=german)
        assert "wartet niemand mehr" in told(await bed.show("/people"))
        await bed.client.post("/people/approve", data=form)
        shown = await bed.show("/people")
        assert told(shown) == "Nadia (cli/nadia) may write"
        assert "Let in by somebody" in shown


async def test_what_is_remembered_of_somebody_is_found_and_forgotten(
    tmp_path: Path,
) -> None:
    async with open_panels(tmp_path) as bed:
        await write_people(bed)
        assert f"/people?id={SAM}" in await bed.show("/people?find=sam")
        here = f"/people?id={SAM}"
        shown = await bed.show(here)
        assert "likes green tea" in shown
        assert "what is 12 * 7" in shown
        assert f'href="/queue?id={SUM}"' in shown
        action = f"/people/forget?id={SAM}"
        form = form_of(shown, action, "one")
        await bed.client.post(action, data=form)
        shown = await bed.show(here)
        assert told(shown) == "forgotten"
        assert "likes green tea" not in shown
        assert "has a cat" in shown
    assert deeds(database(tmp_path)) == [
        (f"forget anna person:{SAM} one", "operator", "forgotten")
    ]


async def test_a_form_that_says_nothing_of_whom_forgets_nothing(tmp_path: Path) -> None:
    async with open_panels(tmp_path) as bed:
        await write_people(bed)
        here, action = f"/people?id={SAM}", f"/people/forget?id={SAM}"
        form = form_of(await bed.show(here), action, "one") | {"scope": "agent"}
        await bed.client.post(action, data=form)
        assert "load the page again" in told(await bed.show(here))
        assert "likes green tea" in await bed.show(here)


async def test_an_answer_that_is_being_made_is_stopped_where_it_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inspect, is_blocked = SqliteDatabase.inspect, list[bool]()

    def watched(
        at: SqliteDatabase, *, live: bool = False
    ) -> AbstractContextManager[Inspection]:
        is_blocked.append(trio.lowlevel.in_trio_run())
        return inspect(at, live=live)

    async with open_panels(tmp_path) as bed:
        monkeypatch.setattr(SqliteDatabase, "inspect", watched)
        await bed.say(NEVER)
        shown = await bed.wait_shown("/actors", 'action="/queue/stop"')
        form = form_of(shown, "/queue/stop")
        done = await bed.client.post("/queue/stop", data=form)
        assert "is being stopped" in told(await bed.show(done.headers["location"]))
        await bed.wait_shown("/queue?state=cancelled", form["id"])
        life = await bed.show(f"/queue?id={form['id']}")
        assert "Over: stopped" in life
        turns = f"{names.turns('anna')}/"
        with trio.fail_after(20):  # the row is written before the turn has ended
            while [x for x in bed.app.system.actors() if x.name.startswith(turns)]:
                await trio.lowlevel.checkpoint()
        assert NEVER in await bed.show(CHAT)  # what was asked
        assert set(is_blocked) == {False}  # the loop never waits for the database
    assert deeds(database(tmp_path)) == [(f"stop {form['id']}", "operator", "stopped")]
