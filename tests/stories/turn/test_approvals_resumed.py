"""A process may end while somebody is asked: asked again, and nothing runs twice."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from actors.messages.deliveries import Delivery
from tests.fakes.company.company import Platform, at_rest, open_company, until
from tests.fakes.company.shell import Office
from tests.fakes.store.crashes import Death, Moment, MortalStore, run_through

Clock = trio.testing.MockClock


async def cut_off(office: Office, *, after_yes: bool = False) -> str:
    """Let the process end while the question stands, or while the tool runs."""
    async with open_company(office.clock, office.cast):
        office.platform.write("run ls")
        approval_id = await office.asked()
        if after_yes:
            office.shell.takes = 1000.0
            office.platform.write("yes", sender="olga")
            await until(lambda: office.shell.ran)
    office.cast.restart()
    return approval_id


async def test_after_a_restart_the_question_is_asked_again_under_the_same_id(
    autojump_clock: Clock,
) -> None:
    office = Office(autojump_clock)
    approval_id = await cut_off(office)
    async with open_company(autojump_clock, office.cast):
        assert await office.asked(2) == approval_id
        office.platform.write(f"/approve {approval_id}", sender="olga")
        await at_rest(office.cast)
    assert office.shell.ran == ["zoe call-1"]
    assert len([each for each in office.said() if "/approve" in each]) == 2
    assert office.said().count("anna: Wait.\n\nIt says: done") == 1


async def test_what_was_approved_and_cut_off_is_not_run_twice(
    autojump_clock: Clock,
) -> None:
    office = Office(autojump_clock)
    await cut_off(office, after_yes=True)
    async with open_company(autojump_clock, office.cast):
        await at_rest(office.cast)
    assert office.shell.ran == ["zoe call-1"]
    assert len([each for each in office.said() if "/approve" in each]) == 1
    assert "nobody knows whether this was done" in office.said()[-1]


class Obliging(Platform):
    """A platform where olga approves whatever she reads a question about."""

    async def deliver(self, delivery: Delivery) -> str:
        receipt = await super().deliver(delivery)
        if delivery.is_aside and "/approve" in delivery.text:
            approval_id = delivery.text.split("/approve ")[1][:2]
            self.write(f"/approve {approval_id}", sender="olga")
        return receipt


def play(*deaths: Death) -> tuple[Office, int]:
    """Have it approved and run, however many processes that takes."""
    clock = trio.testing.MockClock(autojump_threshold=0)
    office = Office(clock, platform=Obliging(), store=MortalStore(*deaths))

    async def main() -> int:
        office.platform.write("run ls")
        return await run_through(clock, office.cast)

    return office, trio.run(main, clock=clock)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_crash_at_any_commit_runs_nothing_twice_and_nothing_unasked(
    moment: Moment,
) -> None:
    calm, processes = play()
    assert processes == 1
    assert calm.shell.ran == ["zoe call-1"]
    store = calm.cast.store
    assert isinstance(store, MortalStore)
    for number in range(1, len(store.commits) + 1):
        office, processes = play((number, moment))
        assert processes == 2, f"commit {number}"
        said = office.said()
        answers = [each for each in said if each.startswith("anna: ")]
        assert len(answers) == 1, f"commit {number}: {said}"
        assert len(office.shell.ran) <= 1, f"commit {number}: {said}"
        is_sure = "done" in answers[0] or "nobody knows" in answers[0]
        assert is_sure, f"commit {number}: {said}"
        assert any("Approved" in each for each in said), f"commit {number}: {said}"
