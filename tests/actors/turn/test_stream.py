"""Proves what people see of an answer while it is made, also if it begins anew."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import ClassVar, NamedTuple

import trio
import trio.testing
from hypothesis import given, strategies as st

from actors.protocol import StartTurn, TurnProgressed, TurnReported, TurnStreamed
from actors.turn.stream import MOVE_PACE, AnswerStream
from runtime.testing import Probe
from tests.fakes.actors.neighbours import make_services, of_kind, probe, words
from tests.support.puppet import Puppet, do, virtual

Script = Callable[[AnswerStream], Awaitable[None]]


class Talker(Puppet):
    """Takes as long as its script does."""

    deadline: ClassVar[float | None] = None


class Round(NamedTuple):
    """What a model says in one round."""

    broken: list[list[str]]
    """The words of calls that broke off, after each of which it begins anew."""

    said: list[str]
    has_notice: bool
    """Whether people get a notice behind these words."""


WORDS = st.lists(st.sampled_from(["one ", "two", "", "x "]), max_size=4)
ROUNDS = st.builds(Round, st.lists(WORDS, max_size=2), WORDS, st.booleans())
PAUSES = st.sampled_from([0.0, 0.001, 1.0])


def listen(script: Script, *, wants_drafts: bool = True) -> Probe:
    """Have a turn say what a script says; give its session, which has heard it."""

    async def main() -> Probe:
        async with virtual(clock) as system:
            session = probe(system, "session")
            start = StartTurn(
                turn_id="t1",
                generation=1,
                session=session.actor_ref,
                inbound=words("what?", wants_drafts=wants_drafts),
                history=(),
            )
            turn = system.spawn(Talker())

            async def run(me: Puppet) -> None:
                await script(AnswerStream(me, start, make_services()))

            await turn.ask(do(run), timeout=1000)
            await trio.testing.wait_all_tasks_blocked()
            return session

    clock = trio.testing.MockClock(autojump_threshold=0)
    return trio.run(main, clock=clock)


async def say(rounds: list[Round], pause: float, stream: AnswerStream) -> None:
    for number, each in enumerate(rounds):
        stream.begin_round()
        for number_of_try, attempt in enumerate((*each.broken, each.said)):
            if number_of_try:
                stream.start_over()
            for piece in attempt:
                stream.speak(piece)
                await trio.sleep(pause)
        stream.end_round("".join(each.said))
        if each.has_notice:
            stream.note(f"n{number}", "still here")
    stream.tell()


def seen(session: Probe) -> list[str]:
    """List what stood on the screen at each notice, and at the end."""
    text = ""
    screens: list[str] = []
    for each in session.received:
        if isinstance(each, TurnStreamed):
            text = each.text if each.starts_over else text + each.text
        elif isinstance(each, TurnReported):
            screens.append(text)
    return [*screens, text]


@given(st.lists(ROUNDS, max_size=4), PAUSES)
def test_people_see_the_words_that_stay_and_each_notice_behind_them(
    rounds: list[Round], pause: float
) -> None:
    session = listen(partial(say, rounds, pause))
    wanted: list[str] = []
    said: list[str] = []
    for each in rounds:
        said += ["".join(each.said)] * any(each.said)
        if each.has_notice:
            wanted.append("\n\n".join(said))
    assert seen(session) == [*wanted, "\n\n".join(said)]


def test_words_that_broke_off_are_taken_back_before_others_come() -> None:
    async def run(stream: AnswerStream) -> None:
        stream.end_round("First.")
        stream.speak("The answer is 4")
        await trio.sleep(1)
        stream.start_over()
        await trio.sleep(1)

    session = listen(run)
    assert seen(session) == ["First."]
    assert [each.starts_over for each in of_kind(session, TurnStreamed)] == [
        False,
        True,
    ]


def test_a_call_that_broke_off_without_a_word_takes_nothing_back() -> None:
    async def run(stream: AnswerStream) -> None:
        stream.speak("First.")
        stream.end_round("First.")
        stream.begin_round()
        stream.start_over()
        stream.speak(" ")
        stream.start_over()

    session = listen(run)
    assert not any(each.starts_over for each in of_kind(session, TurnStreamed))


def test_where_nobody_sees_drafts_the_session_only_learns_that_it_goes_on() -> None:
    async def run(stream: AnswerStream) -> None:
        for _ in range(100):
            stream.speak("word ")
            await trio.sleep(MOVE_PACE / 10)
        stream.start_over()

    session = listen(run, wants_drafts=False)
    assert of_kind(session, TurnStreamed) == []
    assert len(of_kind(session, TurnProgressed)) == 10
