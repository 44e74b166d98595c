"""Proves that a session runs one turn at a time, in order, and loses nothing."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from actors.messages.busy_policies import BusyPolicy, BusySettings
from actors.session.queue import (
    MANY,
    MOST_PASSED,
    Arrival,
    BeginTurn,
    CancelCurrent,
    DropWaiting,
    Effect,
    Event,
    KeepWaiting,
    RefuseMessage,
    SessionQueue,
    StopRequested,
    TurnSettled,
    TurnWaits,
)


def busy(*waiting: str, queue_cap: int = 3) -> SessionQueue:
    queue = SessionQueue(queue_cap)
    for message in ("now", *waiting):
        queue.on(Arrival(message))
    return queue


def test_the_first_message_starts_at_once() -> None:
    queue = SessionQueue(3)
    assert queue.is_idle
    assert queue.on(Arrival("a")) == [BeginTurn("a", 1)]
    assert (queue.current, queue.is_idle) == ("a", False)


def test_a_message_waits_its_turn_and_knows_how_long() -> None:
    queue = busy()
    assert queue.on(Arrival("a")) == [KeepWaiting("a", ahead=1)]
    assert queue.on(Arrival("b")) == [KeepWaiting("b", ahead=2)]
    assert queue.waiting == ("a", "b")


def test_the_next_turn_starts_when_one_ends() -> None:
    queue = busy("a", "b")
    assert queue.on(TurnSettled("now", 1)) == [BeginTurn("a", 2)]
    assert queue.on(TurnSettled("a", 2)) == [BeginTurn("b", 3)]
    assert queue.on(TurnSettled("b", 3)) == []
    assert queue.is_idle


@given(
    senders=st.lists(st.sampled_from("abcde"), max_size=40), queue_cap=st.integers(0, 9)
)
def test_who_writes_much_takes_nobody_elses_part(
    senders: list[str], queue_cap: int
) -> None:
    queue = SessionQueue(queue_cap)
    queue.on(Arrival("now", whose=("now",)))
    waiting: list[str] = []
    for number, sender in enumerate(senders):
        (effect,) = queue.on(Arrival(str(number), whose=(sender,)))
        part = queue_cap / len({*waiting, sender})
        is_let_in = isinstance(effect, KeepWaiting)
        if len(waiting) < queue_cap:
            assert is_let_in
        elif is_let_in:
            assert waiting.count(sender) < part
            assert len(waiting) < 2 * queue_cap
        else:
            assert waiting.count(sender) >= part or len(waiting) >= 2 * queue_cap
        waiting += [sender] * is_let_in


def test_more_than_may_wait_is_refused() -> None:
    queue = busy("a", "b", queue_cap=2)
    assert queue.on(Arrival("c")) == [RefuseMessage("c")]
    assert queue.waiting == ("a", "b")


def test_without_room_to_wait_a_busy_session_refuses() -> None:
    assert busy(queue_cap=0).on(Arrival("a")) == [RefuseMessage("a")]


def stop(*ids: str) -> StopRequested:
    return StopRequested(frozenset(ids))


def test_stop_cancels_the_turn_and_drops_what_waits() -> None:
    queue = busy("a", "b")
    assert queue.on(stop("now", "a", "b")) == [
        CancelCurrent("now", 1),
        DropWaiting(("a", "b")),
    ]
    assert queue.is_idle
    assert queue.waiting == ()


def test_stop_without_a_turn_does_nothing() -> None:
    assert SessionQueue(3).on(stop("a")) == []


def test_stop_with_nothing_waiting_only_cancels() -> None:
    assert busy().on(stop("now")) == [CancelCurrent("now", 1)]


def test_stop_leaves_the_turn_of_somebody_else_alone() -> None:
    queue = busy("a", "b", "c")
    assert queue.on(stop("a", "c")) == [DropWaiting(("a", "c"))]
    assert (queue.current, queue.waiting) == ("now", ("b",))


def test_what_somebody_else_asked_is_next_after_a_stop() -> None:
    queue = busy("a", "b", "c")
    assert queue.on(stop("now", "b")) == [
        CancelCurrent("now", 1),
        DropWaiting(("b",)),
        BeginTurn("a", 2),
    ]
    assert queue.waiting == ("c",)


def test_a_late_end_of_a_stopped_turn_does_not_end_the_next() -> None:
    queue = busy()
    queue.on(stop("now"))
    assert queue.on(Arrival("now")) == [BeginTurn("now", 2)]
    assert queue.on(TurnSettled("now", 1)) == []
    assert queue.current == "now"


def test_a_message_handed_in_twice_has_one_place() -> None:
    queue = busy("a")
    assert queue.on(Arrival("now")) == []
    assert queue.on(Arrival("a")) == []
    assert queue.waiting == ("a",)


def test_who_writes_much_keeps_nobody_else_out() -> None:
    queue = SessionQueue(2)
    for number in range(4):
        queue.on(Arrival(f"m{number}", whose=("mallory",)))
    assert queue.waiting == ("m1", "m2")
    assert queue.on(Arrival("a", whose=("ada",))) == [KeepWaiting("a", ahead=3)]
    assert queue.on(Arrival("b", whose=("ada",))) == [RefuseMessage("b")]
    assert queue.on(Arrival("g", whose=("grace",))) == [KeepWaiting("g", ahead=4)]
    assert len(queue.waiting) == queue.most_waiting
    assert queue.on(Arrival("z", whose=("zoe",))) == [RefuseMessage("z")]


def test_a_negative_cap_is_refused() -> None:
    with pytest.raises(ValueError, match="queue_cap"):
        SessionQueue(-1)


# --- turns that wait ----------------------------------------------------------------


def of(name: str, sender: str) -> Arrival:
    return Arrival(name, whose=(sender, ""))


def test_who_waits_lets_others_pass_and_keeps_its_own_waiting() -> None:
    queue = SessionQueue(3)
    queue.on(of("a1", "ada"))
    queue.on(of("a2", "ada"))
    queue.on(of("b1", "bob"))
    assert queue.on(TurnWaits("a1")) == [BeginTurn("b1", 2)]
    assert (queue.begun, queue.waiting) == (("a1", "b1"), ("a2",))
    assert queue.on(TurnSettled("b1", 2)) == []
    assert queue.on(TurnSettled("a1", 1)) == [BeginTurn("a2", 3)]


def test_of_too_many_that_wait_the_last_keeps_its_place() -> None:
    queue = SessionQueue(1)
    for sender in "abcd":
        queue.on(of(sender, sender))
        queue.on(TurnWaits(sender))
    assert queue.current == "c"  # twice as many as may line up are set aside
    assert (queue.begun, queue.waiting) == (("a", "b", "c"), ("d",))


def test_who_is_set_aside_is_busy_for_its_own_sender_only() -> None:
    queue = SessionQueue(3)
    queue.on(of("a1", "ada"))
    queue.on(TurnWaits("a1"))
    assert queue.on(of("b1", "bob")) == [BeginTurn("b1", 2)]
    assert queue.on(of("a2", "ada")) == [KeepWaiting("a2", ahead=1)]
    queue.on(TurnSettled("b1", 2))
    assert (queue.begun, queue.waiting) == (("a1",), ("a2",))
    queue.on(TurnSettled("a1", 1))
    queue.on(TurnSettled("a2", 3))
    assert queue.is_idle, "of whom nothing runs or waits nothing is kept"


def test_with_nobody_else_there_nothing_begins_beside_it() -> None:
    queue = busy("a")
    assert queue.on(TurnWaits("now")) == []
    assert queue.on(Arrival("b")) == [KeepWaiting("b", ahead=2)]
    assert queue.on(TurnWaits("unheard of")) == []


def test_what_is_written_after_ones_turn_has_ended_comes_behind_what_was_before() -> (
    None
):
    queue = SessionQueue(9)
    queue.on(of("a1", "ada"))
    queue.on(TurnWaits("a1"))
    queue.on(of("a2", "ada"))
    queue.on(of("b1", "bob"))
    queue.on(TurnSettled("a1", 1))  # while bob's turn runs
    queue.on(of("a3", "ada"))
    assert queue.on(TurnSettled("b1", 2)) == [BeginTurn("a2", 3)]
    assert queue.on(TurnSettled("a2", 3)) == [BeginTurn("a3", 4)]


STEPS = st.tuples(st.integers(0, 2), st.sampled_from("hhhwst"), st.integers(0, 3))


@given(st.lists(STEPS, min_size=30, max_size=60))
def test_each_keeps_their_own_order_whoever_waits(
    steps: list[tuple[int, str, int]],
) -> None:
    queue = SessionQueue(50)
    begun: dict[str, list[int]] = {}
    turns: dict[str, int] = {}
    for number, (sender, step, which) in enumerate(steps):
        name = queue.begun[which % len(queue.begun)] if queue.begun else ""
        event: Event = of(f"{sender}/{number}", str(sender))
        if step != "h" and not name:
            continue
        if step == "w":
            event = TurnWaits(name)
        elif step == "s":
            event = TurnSettled(name, turns[name])
        elif step == "t":
            event = stop(name)
        for effect in queue.on(event):
            if isinstance(effect, BeginTurn):
                turns[effect.id] = effect.generation
                who, _, at = effect.id.partition("/")
                begun.setdefault(who, []).append(int(at))
        senders = [each.partition("/")[0] for each in queue.begun]
        assert len(senders) == len({*senders})
        waiting = {each.partition("/")[0] for each in queue.waiting}
        assert queue.current or waiting <= {*senders}
    assert all(each == sorted(each) for each in begun.values())
    assert len(turns) + len(queue.waiting) == sum(s[1] == "h" for s in steps)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=60))
def test_nobody_has_two_turns_while_somebody_waits_for_one(
    steps: list[tuple[int, bool]],
) -> None:
    queue, turns = SessionQueue(100), dict[str, int]()
    since: dict[int, list[int]] = {}
    """By who waits: whose turns began meanwhile."""

    flooding: set[int] = set()
    """Who had more messages waiting at some time than others let go first for."""

    def happens(event: Event) -> None:
        for effect in queue.on(event):
            if not isinstance(effect, BeginTurn):
                continue
            turns[effect.id] = effect.generation
            who = int(effect.id.partition("/")[0])
            since.pop(who, None)
            for waits, others in since.items():
                others.append(who)
                assert others.count(who) == 1 or waits in flooding
        waiting = Counter(int(each.partition("/")[0]) for each in queue.waiting)
        since.update({each: [] for each in waiting.keys() - since.keys()})
        flooding.update(each for each, count in waiting.items() if count > MANY)

    for number, (sender, is_end) in enumerate(steps):
        happens(of(f"{sender}/{number}", str(sender)))
        if is_end and queue.begun:
            happens(TurnSettled(queue.begun[0], turns[queue.begun[0]]))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2)), max_size=60))
def test_nobody_is_overtaken_by_what_was_written_later_but_by_who_floods_less(
    steps: list[tuple[int, int]],
) -> None:
    queue, turns = SessionQueue(100), dict[str, int]()
    ended: dict[str, float] = {}
    """By sender: how many messages had been written when their last turn ended."""

    def happens(event: Event) -> None:
        before = queue.waiting
        for effect in queue.on(event):
            if not isinstance(effect, BeginTurn):
                continue
            turns[effect.id] = effect.generation
            who, _, written = effect.id.partition("/")
            many = Counter(each.partition("/")[0] for each in before)
            for other in queue.waiting:
                whose, _, since = other.partition("/")
                waits = max(int(since), ended.get(whose, -1))
                is_flood = many[whose] > MANY or many[who] > MANY
                assert is_flood or waits >= max(int(written), ended.get(who, -1))

    for number, (sender, ends) in enumerate(steps):
        happens(of(f"{sender}/{number}", str(sender)))
        for _ in range(ends):
            if not queue.begun:
                break
            name = queue.begun[0]
            ended[name.partition("/")[0]] = number + 0.5
            happens(TurnSettled(name, turns[name]))


def test_who_has_just_had_a_turn_waits_for_nobody_who_writes_later() -> None:
    queue = SessionQueue(9)
    queue.on(of("a1", "ada"))
    for name, sender in (("b1", "bob"), ("a2", "ada")):
        queue.on(of(name, sender))
    assert queue.on(TurnSettled("a1", 1)) == [BeginTurn("b1", 2)]
    for name, sender in (("c1", "cid"), ("a3", "ada"), ("d1", "dot")):
        queue.on(of(name, sender))
    assert queue.on(TurnSettled("b1", 2)) == [BeginTurn("a2", 3)]
    queue.on(of("e1", "eve"))
    assert queue.on(TurnSettled("a2", 3)) == [BeginTurn("c1", 4)]
    assert queue.on(TurnSettled("c1", 4)) == [BeginTurn("d1", 5)]
    assert queue.on(TurnSettled("d1", 5)) == [BeginTurn("e1", 6)]
    assert queue.on(TurnSettled("e1", 6)) == [BeginTurn("a3", 7)]


def test_who_floods_lets_others_go_first_but_no_more_than_a_dozen_times() -> None:
    queue = SessionQueue(100)
    sent = 0

    def write(sender: str) -> list[Effect]:
        nonlocal sent
        sent += 1
        return queue.on(of(f"{sender}{sent}", sender))

    effects = write("flood")
    for _ in range(2 * MOST_PASSED):
        write("flood")
    for sender in ("ada", "bob"):
        write(sender)
    begun: list[str] = []
    for _ in range(3 * MOST_PASSED):
        for effect in effects:
            assert isinstance(effect, BeginTurn)
            begun.append(effect.id.rstrip("0123456789"))
            effects = queue.on(TurnSettled(effect.id, effect.generation))
        if begun[-1] != "flood":
            write(begun[-1])  # who was answered asks again at once
    turns = [number for number, who in enumerate(begun) if who == "flood"]
    gaps = [after - before for before, after in pairwise(turns)]
    assert gaps == [MOST_PASSED + 1] * len(gaps)
    assert len(gaps) >= 2


def test_of_two_who_flood_neither_waits_for_the_others_whole_flood() -> None:
    queue = SessionQueue(100)
    effects = queue.on(of("ada0", "ada"))
    for number in range(1, 7):
        queue.on(of(f"ada{number}", "ada"))
    for number in range(MANY + 1):
        queue.on(of(f"bob{number}", "bob"))
    begun: list[str] = []
    for number in range(7):
        (effect,) = effects
        assert isinstance(effect, BeginTurn)
        begun.append(effect.id.rstrip("0123456789"))
        if begun[-1] == "bob":  # always has one more than others let go first
            queue.on(of(f"bob{number + 100}", "bob"))
        effects = queue.on(TurnSettled(effect.id, effect.generation))
    assert begun == ["ada", "bob"] * 3 + ["ada"]


@pytest.mark.parametrize("policy", ["followup", "interrupt", "steer"])
def test_messages_that_share_a_turn_count_as_one(policy: BusyPolicy) -> None:
    def line(name: str) -> Arrival:
        return Arrival(name, whose=("ada", ""), may_join=True)

    queue = SessionQueue(9, BusySettings(policy=policy))
    (begun,) = queue.on(of("c1", "cid"))
    assert isinstance(begun, BeginTurn)
    for number in range(MANY + 2):
        queue.on(line(f"a{number}"))
    queue.on(of("b1", "bob"))
    (begun,) = queue.on(TurnSettled("c1", begun.generation))
    assert isinstance(begun, BeginTurn)
    assert (begun.id, len(begun.also)) == ("a0", MANY + 1)
    again = tuple(line(name) for name in (begun.id, *begun.also))
    (begun,) = queue.on(TurnSettled("a0", begun.generation, again))
    assert isinstance(begun, BeginTurn)
    assert begun.id == "a0"


def test_who_was_cut_off_in_a_shared_turn_is_next_all_the_same() -> None:
    queue = SessionQueue(9)
    for name, sender in (("a1", "ada"), ("b1", "bob"), ("a2", "ada")):
        queue.on(of(name, sender))
    again = (of("a3", "ada"),)
    assert queue.on(TurnSettled("a1", 1, again)) == [BeginTurn("a3", 2)]
    assert queue.on(TurnSettled("a3", 2)) == [BeginTurn("b1", 3)]
    assert queue.on(TurnSettled("b1", 3)) == [BeginTurn("a2", 4)]


class Session(RuleBasedStateMachine):
    """Compares the queue with a list, and every message with its one fate."""

    @initialize(queue_cap=st.integers(0, 3))
    def begin(self, queue_cap: int) -> None:
        self.queue = SessionQueue(queue_cap)
        self.queue_cap = queue_cap
        self.line: list[str] = []  # the running one first
        self.turns: list[tuple[str, int]] = []  # all that ever started
        self.heard = 0
        self.fates: dict[str, str] = {}

    def end(self, message: str, fate: str) -> None:
        assert message not in self.fates
        self.fates[message] = fate

    def started(self, effects: list[Effect]) -> None:
        [effect] = effects
        assert isinstance(effect, BeginTurn)
        assert effect.id == self.line[0]
        assert all(effect.generation > old for _, old in self.turns)
        self.turns.append((effect.id, effect.generation))

    @rule()
    def hear(self) -> None:
        self.heard += 1
        message = f"m{self.heard}"
        effects = self.queue.on(Arrival(message))
        if not self.line:
            self.line = [message]
            self.started(effects)
        elif len(self.line) > self.queue_cap:
            assert effects == [RefuseMessage(message)]
            self.end(message, "refused")
        else:
            assert effects == [KeepWaiting(message, ahead=len(self.line))]
            self.line.append(message)

    @rule()
    def hear_again(self) -> None:
        for message in self.line:
            assert self.queue.on(Arrival(message)) == []

    @rule()
    def end_turn(self) -> None:
        if not self.line:
            return
        effects = self.queue.on(TurnSettled(*self.turns[-1]))
        self.end(self.line.pop(0), "ended")
        if self.line:
            self.started(effects)
        else:
            assert effects == []

    @rule(which=st.integers(0, 30))
    def report_late(self, which: int) -> None:
        late = self.turns[:-1] if self.line else self.turns
        if late:
            assert self.queue.on(TurnSettled(*late[which % len(late)])) == []

    @rule(keep=st.sets(st.integers(0, 3)))
    def stop(self, keep: set[int]) -> None:
        stopped = [each for place, each in enumerate(self.line) if place not in keep]
        expected: list[Effect] = []
        if is_cancelled := self.line[:1] == stopped[:1] != []:
            expected.append(CancelCurrent(*self.turns[-1]))
        if waited := tuple(stopped[is_cancelled:]):
            expected.append(DropWaiting(waited))
        effects = self.queue.on(StopRequested(frozenset((*stopped, "elsewhere"))))
        assert effects[: len(expected)] == expected
        for message in stopped:
            self.end(message, "stopped")
        self.line = [each for each in self.line if each not in stopped]
        if is_cancelled and self.line:
            self.started(effects[len(expected) :])
        else:
            assert effects == expected

    @invariant()
    def the_queue_is_as_the_list_and_no_message_is_lost(self) -> None:
        assert self.queue.current == (self.line[0] if self.line else None)
        assert list(self.queue.waiting) == self.line[1:]
        assert len(self.queue.waiting) <= self.queue_cap
        assert len(self.fates) + len(self.line) == self.heard


TestSession = Session.TestCase
