"""Proves that every message has one fate, and nobody loses by others, by any policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from actors.messages.busy_policies import (
    POLICY_RULES,
    BusyPolicy,
    BusySettings,
    Overflow,
)
from actors.session.queue import (
    Arrival,
    BeginTurn,
    CancelCurrent,
    Debounce,
    DebounceElapsed,
    DropWaiting,
    Effect,
    InjectMessages,
    KeepWaiting,
    RefuseMessage,
    RoundStarting,
    SessionQueue,
    StopRequested,
    TurnSettled,
)

POLICIES = cast("Sequence[BusyPolicy]", tuple(POLICY_RULES))
OVERFLOWS: Sequence[Overflow] = ("new", "oldest", "summarise")


class Conversation(RuleBasedStateMachine):
    """Gives every message its one fate, whatever the policy."""

    @initialize(
        policy=st.sampled_from(POLICIES),
        cap=st.integers(0, 4),
        debounce=st.sampled_from((0.0, 1.0)),
        overflow=st.sampled_from(OVERFLOWS),
        injections=st.integers(0, 2),
    )
    def begin(
        self,
        policy: BusyPolicy,
        cap: int,
        debounce: float,
        overflow: Overflow,
        injections: int,
    ) -> None:
        buffering = BusySettings(
            policy,
            debounce=debounce,
            overflow=overflow,
            injections=injections,
            most_chars=35,
        )
        self.queue, self.cap, self.buffering = (
            SessionQueue(cap, buffering),
            cap,
            buffering,
        )
        self.heard: dict[str, Arrival] = {}
        self.waits: list[str] = []
        self.turn: list[str] = []  # all that the running turn answers
        self.last: tuple[str, int] = ("", 0)
        self.is_ending = False
        self.fates: dict[str, str] = {}
        self.served: dict[tuple[str, ...], int] = {}
        self.gather = 0
        self.owed = 0

    def end(self, message: str, fate: str) -> None:
        assert message not in self.fates, (message, fate)
        self.fates[message] = fate

    def take(self, names: Sequence[str]) -> None:
        """Check that these were waiting, and are the oldest of their sender."""
        for name in names:
            self.waits.remove(name)
            heard = self.heard[name]
            older = [w for w in self.waits if self.heard[w].whose == heard.whose]
            assert all(int(name[1:]) < int(w[1:]) for w in older), (name, older)

    def play(self, effects: list[Effect], by: Arrival | None = None) -> None:
        for effect in effects:
            match effect:
                case BeginTurn():
                    self.start(effect)
                case InjectMessages(ids=ids):
                    self.take(ids)
                    assert {self.heard[x].whose for x in ids} == {self.whose}
                    self.turn += ids
                case Debounce(number=number):
                    self.gather = number
                case KeepWaiting():
                    assert effect.id in self.waits
                case RefuseMessage() | DropWaiting() | CancelCurrent():
                    self.lose(effect, by)

    def start(self, start: BeginTurn) -> None:
        assert not self.turn
        assert start.generation > self.last[1]
        self.turn = [start.id, *start.also]
        self.take(self.turn)
        assert len({self.heard[x].whose for x in self.turn}) == 1
        self.last, self.is_ending = (start.id, start.generation), False

    def lose(
        self, effect: RefuseMessage | DropWaiting | CancelCurrent, by: Arrival | None
    ) -> None:
        """Check that nobody loses anything by what somebody else wrote."""
        assert by is None or by.whose == self.whose_loses(effect)
        if isinstance(effect, CancelCurrent):
            self.is_ending = True
            if effect.reason == "stopped":
                self.finish("stopped")
            return
        ids = (effect.id,) if isinstance(effect, RefuseMessage) else effect.ids
        for name in ids:
            self.waits.remove(name)
            self.end(name, effect.reason)

    def whose_loses(
        self, effect: RefuseMessage | DropWaiting | CancelCurrent
    ) -> tuple[str, ...]:
        ids = effect.ids if isinstance(effect, DropWaiting) else (effect.id,)
        (whose,) = {self.heard[name].whose for name in ids}
        return whose

    @property
    def whose(self) -> tuple[str, ...]:
        return self.heard[self.turn[0]].whose

    def finish(self, fate: str) -> None:
        for name in self.turn:
            self.end(name, fate)
        self.turn = []

    @rule(
        sender=st.sampled_from("zy"),
        is_plain=st.booleans() | st.just(True),  # noqa: FBT003
        is_media=st.booleans(),
        is_late=st.booleans(),
        now=st.floats(0, 9),
    )
    def hear(
        self, sender: str, *, is_plain: bool, is_media: bool, is_late: bool, now: float
    ) -> None:
        name = f"m{len(self.heard)}"
        heard = Arrival(
            name,
            whose=(sender,),
            may_join=is_plain,
            is_media=is_media,
            is_late=is_late,
            size=10,
            now=now,
        )
        self.heard[name] = heard
        self.waits.append(name)
        self.play(self.queue.on(heard), heard)

    @rule()
    def hear_again(self) -> None:
        for name in (*self.waits, *self.turn):
            assert self.queue.on(self.heard[name]) == []

    @rule(missing=st.integers(0, 2))
    def end_turn(self, missing: int) -> None:
        if not self.turn:
            return
        kept = max(1, len(self.turn) - missing)
        again, self.turn = self.turn[kept:], self.turn[:kept]
        if self.is_ending:
            self.turn, again = [*self.turn, *again], []
        self.finish("interrupted" if self.is_ending else "answered")
        self.waits[:0] = again
        self.owed += len(again)
        missed = tuple(self.heard[name] for name in again)
        self.play(self.queue.on(TurnSettled(*self.last, missed)))

    @rule()
    def end_another_turn(self) -> None:
        name, generation = self.last
        assert self.queue.on(TurnSettled(name, generation - 1)) == []

    @rule()
    def begin_round(self) -> None:
        self.play(self.queue.on(RoundStarting(self.last[1])))

    @rule()
    def end_gathering(self) -> None:
        self.play(self.queue.on(DebounceElapsed(self.gather)))

    @rule(sender=st.sampled_from("zy"))
    def stop(self, sender: str) -> None:
        mine = {x for x in self.heard if self.heard[x].whose == (sender,)}
        self.play(self.queue.on(StopRequested(frozenset(mine))))

    @invariant()
    def every_message_has_one_place(self) -> None:
        if not hasattr(self, "queue"):
            return
        assert sorted(self.queue.waiting) == sorted(self.waits)
        assert list(self.queue.members) == self.turn
        assert len(self.fates) + len(self.waits) + len(self.turn) == len(self.heard)

    @invariant()
    def it_is_bounded(self) -> None:
        if hasattr(self, "queue"):
            assert len(self.waits) <= self.queue.most_waiting + self.owed
            assert len(self.turn) <= 1 + 2 * max(self.cap, 1) + 2 + self.owed

    @invariant()
    def nothing_waits_for_nothing(self) -> None:
        if hasattr(self, "queue") and self.waits and not self.turn:
            assert self.buffering.debounce > 0


TestConversation = Conversation.TestCase
