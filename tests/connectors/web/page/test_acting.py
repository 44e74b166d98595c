"""Proves that what the operator does on the page is done once, and is on record."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest
import trio

from actors import names
from actors.journal import records
from actors.journal.records import CHANNEL, AuditRecord
from actors.operations import warden as killing
from connectors.admin.queue import collect
from connectors.admin.schedule import all_rows
from connectors.cli import run
from runtime.sqlite.database import SqliteDatabase
from tests.support.desk import FAILED, SUM, WAITING
from tests.support.panel_bed import CHAT, PanelBed, open_panels, told

SLOW = "slowly " + " ".join(f"word{number}" for number in range(20))


def deeds(path: Path) -> list[tuple[str, str, str]]:
    """Give what was done by hand: what, by whom, what became of it; oldest first."""
    with SqliteDatabase(path).inspect() as rows:
        found = [
            msgspec.json.decode(row.body, type=AuditRecord)
            for row in rows.records(records.AUDIT)
        ]
    mine = [each for each in found if each.channel == CHANNEL]
    return [(each.input, each.sender_id, each.status) for each in reversed(mine)]


def database(folder: Path) -> Path:
    return folder / "callboard.db"


def state_of(folder: Path, name: str) -> str:
    with SqliteDatabase(database(folder)).inspect() as rows:
        return collect(rows, name, b"", pytest.fail).message.state


async def test_a_failed_message_is_tried_again_once(tmp_path: Path) -> None:
    async with open_panels(tmp_path) as bed:
        shown = await bed.press("/queue?state=failed", "/queue/retry", id=FAILED)
        assert told(shown) == f"message {FAILED} is tried again"
        assert state_of(tmp_path, FAILED) == "accepted"
        form = {"id": FAILED, "csrf": csrf_of(shown)}
        await bed.client.post("/queue/retry", data=form)
        assert "it is waiting for its turn already" in told(await bed.show("/queue"))
    assert deeds(database(tmp_path)) == [(f"retry {FAILED}", "operator", "retried")]


def csrf_of(html: str) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', html)
    assert found is not None
    return found[1]


async def test_a_message_and_a_delivery_are_dropped(tmp_path: Path) -> None:
    async with open_panels(tmp_path) as bed:
        shown = await bed.press("/queue", "/queue/drop", id=WAITING)
        assert told(shown) == f"message {WAITING} is dropped"
        shown = await bed.press("/queue", "/queue/drop", id=f"{SUM}:0")
        assert told(shown) == f"delivery {SUM}:0 is dropped; it is not sent again"
        assert f"delivery-{SUM}:0" not in shown
    assert state_of(tmp_path, WAITING) == "dropped"
    assert [each[0] for each in deeds(database(tmp_path))] == [
        f"drop {WAITING}",
        f"drop {SUM}:0",
    ]


async def test_what_waits_for_its_next_try_can_be_hurried(tmp_path: Path) -> None:
    async with open_panels(tmp_path) as bed:
        shown = await bed.press("/queue", "/queue/retry", id=WAITING)
        assert told(shown) == f"message {WAITING} no longer waits for its time"
        assert f'id="retry-{WAITING}"' not in shown
        audit = await bed.show("/audit")
        assert f"retry {WAITING}" in audit
        assert "operator/01WAITING" in audit


async def test_an_appointment_rests_goes_on_and_is_carried_out_at_once(
    tmp_path: Path,
) -> None:
    async with open_panels(tmp_path) as bed:
        given = ["--db", str(database(tmp_path)), "--agent", "anna"]
        given += ["--chat", "cli/kitchen", "--at", "in 2 hours", "water the roses"]
        add = partial(run, ["schedule", "add", *given])
        assert await trio.to_thread.run_sync(add) == 0
        with SqliteDatabase(database(tmp_path)).inspect() as rows:
            (row,) = all_rows(rows)
        for action, seen in (("pause", "rests"), ("resume", "goes on")):
            shown = await bed.press("/schedule", f"/schedule/{action}", id=row.id)
            assert seen in told(shown)
        assert "water the roses" in await bed.show(f"/schedule?id={row.id}")
        for asked, is_found in (
            *(("find=ROSES+", True), ("find=kitchen&agent=anna", True)),
            *(("find=lawn", False), ("agent=ben", False)),
        ):
            shown = await bed.show(f"/schedule?{asked}")
            assert (f"appointment-{row.id}" in shown) is is_found
            assert ("No appointment fits." in shown) is not is_found
        await bed.press("/schedule", "/schedule/run", id=row.id)
        await bed.wait_shown("/schedule", f"/schedule?id={row.id}")
    done = [each[2] for each in deeds(database(tmp_path))]
    assert done == ["paused", "resumed", "begun"]


async def session_of(bed: PanelBed) -> str:
    """Wait until anna has a turn for a person of the page; gives its session's name."""
    sessions, turns = names.sessions("anna"), names.turns("anna")
    with trio.fail_after(10):
        while True:
            found = {each.name for each in bed.app.system.actors()}
            if any(each.startswith(f"{turns}/") for each in found):
                return next(x for x in found if x.startswith(f"{sessions}/"))
            await trio.lowlevel.checkpoint()


async def test_a_conversation_killed_in_mid_turn_answers_once(tmp_path: Path) -> None:
    async with open_panels(tmp_path) as bed:
        await bed.say(SLOW)
        name = await session_of(bed)
        place = f"/actors?kill={quote(name)}"
        assert "Kill this actor?" in await bed.show(place)
        shown = await bed.press(place, "/actors/kill")
        assert told(shown) == f"{name} is killed; its supervisor restarts it"
        shown = await bed.wait_shown("/actors", "1 restart")
        assert "EndedByHandError: killed by operator" in shown
        await bed.wait_shown(CHAT, "word19", 2)
        await bed.say("and now")
        shown = await bed.wait_shown(CHAT, "you said")
        # Once asked, once answered.
        assert shown.count("word19") == 2
    assert deeds(database(tmp_path)) == [(f"kill {name}", "operator", "killed")]
    assert b'actors_killed_total{kind="Session"} 1.0' in bed.app.metrics.render()


@pytest.mark.parametrize("name", [names.ROOT, names.KEEPER, names.ROUTER, "nobody"])
async def test_who_may_not_be_killed_has_no_button(tmp_path: Path, name: str) -> None:
    async with open_panels(tmp_path) as bed:
        shown = await bed.show(f"/actors?kill={name}")
        assert 'action="/actors/kill"' not in shown
        form = {"name": name, "csrf": csrf_of(shown)}
        response = await bed.client.post("/actors/kill", data=form)
        assert response.headers["location"] == "/actors"
        why = killing.refusal(name, names.ROOT)
        assert why in told(await bed.show("/actors"))
        assert await bed.app.readiness() == ()
    assert deeds(database(tmp_path)) == []


async def test_the_page_itself_can_be_killed_and_comes_back(tmp_path: Path) -> None:
    async with open_panels(tmp_path) as bed:
        name = f"{names.CONNECTORS}/page"
        form = {"name": name, "csrf": csrf_of(await bed.show("/actors"))}
        await bed.client.post("/actors/kill", data=form)
        found = bed.app.system.actors
        with trio.fail_after(20):
            while not any(x.name == f"{name}/listener" and x.age for x in found()):
                await trio.lowlevel.checkpoint()
        assert deeds(database(tmp_path))[0][0] == f"kill {name}"


ASKS = """
[[permissions]]
ask = ["calculate"]

[[permissions]]
delegated = true
ask = ["calculate"]
"""


@pytest.mark.parametrize(
    ("action", "said"), [("approve", "may use"), ("deny", "may not use")]
)
async def test_a_tool_call_is_decided_on_the_overview(
    tmp_path: Path, action: str, said: str
) -> None:
    async with open_panels(tmp_path, ASKS) as bed:
        await bed.say("sum 12*7")
        shown = await bed.wait_shown("/overview", "12*7")
        [waits] = bed.app.company.services.board.open
        question = bed.app.company.services.board.question_of(waits.id)
        # Another call may have its short id, at another node or later.
        form = {"id": waits.id, "question": "another", "csrf": csrf_of(shown)}
        await bed.client.post(f"/overview/{action}", data=form)
        assert "somebody has decided" in told(await bed.show("/overview"))
        after = await bed.press("/overview", f"/overview/{action}")
        assert told(after).startswith(f"ben {said} calculate")
        assert not bed.app.company.services.board.open
        if action == "approve":
            await bed.wait_shown(CHAT, "84")
        form = {"question": question, "csrf": csrf_of(after)}
        await bed.client.post(f"/overview/{action}", data=form)
        assert "somebody has decided" in told(await bed.show("/overview"))
    [done] = deeds(database(tmp_path))
    assert done[:2] == (f"{action} ben calculate {waits.id}", "operator")
