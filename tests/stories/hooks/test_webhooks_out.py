"""What happens in the company is told to another program, once it is durable."""

from __future__ import annotations

import json
from typing import Any

import trio
import trio.testing

from actors.errors import ModelRefusedError
from actors.journal.notices import DUE, EVENTS, Announcer, Subscription
from actors.journal.parts import entries_of
from actors.rules.markers.actions import Schedule
from actors.webhooks.messages import Receiver, WebhookMetrics
from actors.webhooks.retry import PostResult, WebhookRetryPolicy
from runtime.store.port import Done
from runtime.store.rows import Commit
from tests.fakes.company.arranging import arrange
from tests.fakes.company.company import Cast, FakeModel, Says, at_rest, open_company
from tests.fakes.company.furnished import changed
from tests.fakes.company.hirers import CARL, Hirers, saying
from tests.fakes.company.hooked import hooked, refuses
from tests.fakes.store.refused_answers import RefusedAnswers

Clock = trio.testing.MockClock


def without_secret(text: str) -> str:
    return text.replace("s3cret", "***")


class Ear:
    """Another program, which hears what it is told."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.ids: list[str] = []
        self.parents: list[str] = []
        self.status = 204

    async def post(self, name: str, body: bytes, traceparent: str) -> PostResult:
        self.parents.append(traceparent)
        await trio.lowlevel.checkpoint()
        self.ids.append(name)
        if self.status == 204:
            self.heard.append(json.loads(body))
            shape = EVENTS[self.heard[-1]["type"]]
            assert set(self.heard[-1]["data"]) <= {*shape.fields, *shape.texts}
        return PostResult(self.status)

    def of(self, cast: Cast, **subscription: Any) -> None:
        """Begin to be told."""
        cast.announcer = Announcer((Subscription(name="ops", **subscription),))
        receiver = Receiver(
            name="ops",
            post=self.post,
            policy=WebhookRetryPolicy(),
            at_once=1,
            most=100,
            keep_dead=1e6,
            metrics=WebhookMetrics(cast.metrics),
        )
        cast.receivers = (receiver,)

    @property
    def types(self) -> list[str]:
        return [each["type"] for each in self.heard]


async def test_an_event_names_the_trace_that_it_is_a_part_of(
    autojump_clock: Clock,
) -> None:
    ear, cast = Ear(), Cast()
    cast.traceparent = lambda cause, turn: f"{cause}/{turn}"
    ear.of(cast)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
    assert ear.parents == [f"{ear.heard[0]['data']['correlation_id']}/"]


async def test_a_turn_that_ends_is_told_with_what_it_took(
    autojump_clock: Clock,
) -> None:
    ear, cast = Ear(), Cast()
    ear.of(cast)
    async with open_company(autojump_clock, cast):
        cast.platform.write("my secret plan")
        await at_rest(cast)
        await trio.sleep(1)
        assert await cast.store.entries(DUE) == ()
    (told,) = ear.heard
    data = told["data"]
    assert told["type"] == "turn.finished"
    assert (data["agent"], data["outcome"], data["reason"]) == ("anna", "replied", "ok")
    assert (data["connector"], data["chat"]) == ("fake", "room")
    assert (data["input_tokens"], data["output_tokens"]) == (3, 2)
    assert "plan" not in json.dumps(ear.heard)


async def test_texts_are_told_to_who_is_to_have_them_without_secrets(
    autojump_clock: Clock,
) -> None:
    ear = Ear()

    class Redacting(Cast):
        @property
        def services(self) -> Any:
            found = super().services
            return changed(found, redact=without_secret)

    cast = Redacting()
    ear.of(cast, has_texts=True)
    async with open_company(autojump_clock, cast):
        cast.platform.write("mind the s3cret")
        await at_rest(cast)
        await trio.sleep(1)
    (told,) = ear.heard
    assert told["data"]["asked"] == "mind the ***"
    assert told["data"]["said"] == "anna heard mind the ***"


async def test_a_message_that_a_hook_holds_back_is_told_as_dropped(
    autojump_clock: Clock,
) -> None:
    ear, cast = Ear(), Cast()
    ear.of(cast)
    hooked(cast, refuses)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
        await trio.sleep(1)
    (told,) = ear.heard
    assert (told["type"], told["data"]["reason"]) == ("message.dropped", "hook")


async def test_a_turn_that_fails_or_is_stopped_is_told_as_that(
    autojump_clock: Clock,
) -> None:
    refused = Says(error=ModelRefusedError("no such model", kind="bad_request"))
    says = iter([refused, Says("slow", after=60)])
    ear, cast = Ear(), Cast(model=FakeModel(lambda _: next(says)))
    ear.of(cast)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
        cast.platform.write("again")
        await trio.sleep(1)
        cast.platform.write("/stop")
        await at_rest(cast)
        await trio.sleep(1)
    assert ear.types == ["turn.failed", "turn.cancelled"]
    assert ear.heard[0]["data"]["trouble"] == "refused"


async def test_nothing_is_told_of_what_was_not_stored(autojump_clock: Clock) -> None:
    together: list[tuple[int, int]] = []

    class Watched(RefusedAnswers):
        """Keeps what each commit holds."""

        def submit(self, commit: Commit, done: Done) -> None:
            if commit.settles:
                told = [each for each in entries_of(commit) if each.kind == DUE]
                together.append((len(commit.settles), len(told)))
            super().submit(commit, done)

    ear, cast = Ear(), Cast(store=Watched(times=2))
    ear.of(cast)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
        await trio.sleep(5)
    assert ear.types == ["turn.finished"]
    assert set(together) == {(1, 1)}
    assert len(together) >= 2


async def test_what_was_not_sent_is_told_after_a_restart(autojump_clock: Clock) -> None:
    ear, cast = Ear(), Cast()
    ear.of(cast)
    ear.status = 503
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
        await trio.sleep(1)
    assert ear.heard == []
    cast.restart()
    ear.status = 204
    async with open_company(autojump_clock, cast):
        await trio.sleep(60)
    assert ear.types == ["turn.finished"]
    assert len(set(ear.ids)) == 1


async def test_an_appointment_that_is_carried_out_is_told(
    autojump_clock: Clock,
) -> None:
    ear, cast = Ear(), Cast()
    ear.of(cast, events=("appointment.*",))
    async with open_company(autojump_clock, cast) as system:
        await arrange(system, cast, Schedule("water the roses", "in 20 minutes"))
        await trio.sleep(1300)
    (told,) = ear.heard
    assert told["type"] == "appointment.fired"
    assert told["data"]["kind"] == "reminder"
    assert "roses" not in json.dumps(told)


async def test_an_agent_that_is_made_is_told(autojump_clock: Clock) -> None:
    ear = Ear()
    cast = Hirers(model=FakeModel(saying(hire=CARL)))
    ear.of(cast, events=("agent.*",))
    async with open_company(autojump_clock, cast):
        cast.platform.write("please hire", sender="zoe", chat="with-zoe")
        await at_rest(cast)
        await trio.sleep(1)
    (told,) = ear.heard
    assert told["type"] == "agent.created"
    assert (told["data"]["agent"], told["data"]["by"]) == ("carl", "boss")


async def test_who_is_told_of_nothing_costs_nothing(autojump_clock: Clock) -> None:
    cast = Cast()
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
    assert await cast.store.entries(DUE) == ()
