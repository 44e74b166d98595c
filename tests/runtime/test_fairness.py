"""Proves that places are shared: nobody takes all, and whoever waits has their turn."""

from __future__ import annotations

from collections import Counter, defaultdict, deque

import pytest
import trio
import trio.testing
from hypothesis import given, strategies as st

from runtime.fairness import (
    FairLimiter,
    FairQueue,
    Owner,
    PlacesHeld,
    WaitingTurns,
    most_of_one,
)


def anybody(_owner: Owner, _item: int | None) -> bool:
    return True


def test_three_quarters_are_rounded_down_and_an_only_place_is_anybody_s() -> None:
    assert [most_of_one(most) for most in (1, 2, 3, 4, 5, 8)] == [1, 1, 2, 3, 3, 6]


@given(st.integers(2, 1_000))
def test_of_several_places_one_is_always_left_to_others(most: int) -> None:
    assert 1 <= most_of_one(most) < most


@given(
    st.integers(1, 40),
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")), max_size=80),
)
def test_nobody_takes_all_of_what_the_name_before_them_may_have(
    most: int, asked: list[Owner]
) -> None:
    held, key, person = PlacesHeld(), most_of_one(most), most_of_one(most_of_one(most))
    mine = Counter[Owner]()
    for owner in asked:
        of_key = sum(mine[each] for each in mine if each[0] == owner[0])
        may = of_key < key and mine[owner] < person
        assert held.may_add(owner, most) == may
        assert held.may_add(owner, most, 2)
        if may:
            held.add(owner)
            mine[owner] += 1
    assert len(held) == mine.total()
    assert all(held.held(owner) == count for owner, count in mine.items())
    for owner in mine.elements():
        held.remove(owner)
    assert not len(held)


def test_nobody_in_particular_may_have_all() -> None:
    held = PlacesHeld()
    for _ in range(9):
        assert held.may_add(("", ""), 4)
        held.add(("", ""))
    assert held.may_add(("", "zoe"), 4)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), max_size=30))
def test_each_item_is_taken_once_and_owners_take_turns(
    asked: list[tuple[str, int]],
) -> None:
    turns: WaitingTurns[int] = WaitingTurns()
    lines: defaultdict[str, deque[int]] = defaultdict(deque)
    for number, (owner, _) in enumerate(asked):
        turns.add((owner,), number)
        lines[owner].append(number)
    assert len(turns) == len(asked)
    served: Counter[str] = Counter()
    last: Owner = ()
    while (found := turns.next(anybody, last)) is not None:
        last, number = found
        turns.take(last, number)
        (owner,) = last
        assert number == lines[owner].popleft()
        served[owner] += 1
        behind = [each for each in lines if lines[each] and each != owner]
        assert all(served[owner] <= served[each] + 1 for each in behind)
    assert served.total() == len(asked)
    assert not len(turns)


def test_whoever_just_had_a_turn_comes_after_somebody_who_asks_later() -> None:
    turns: WaitingTurns[int] = WaitingTurns()
    turns.add(("a",), 1)
    turns.add(("b",), 2)
    assert turns.next(anybody, ()) == (("a",), 1)
    assert turns.next(anybody, ("a",)) == (("b",), 2)
    turns.take(("b",), 2)
    assert turns.next(anybody, ("a",)) == (("a",), 1), "alone: every turn"


def test_whoever_may_not_have_a_turn_is_passed_over() -> None:
    turns: WaitingTurns[int] = WaitingTurns()
    turns.add(("a",), 1)
    turns.add(("b",), 2)
    assert turns.next(lambda owner, _: owner != ("a",), ()) == (("b",), 2)
    turns.take(("b",), 2)
    assert turns.next(lambda owner, _: owner != ("a",), ()) is None
    assert not turns.remove(("b",), 1)
    assert turns.remove(("a",), 1)
    assert not turns.remove(("a",), 1)
    assert not turns.waiting(("a",))


def test_names_behind_a_name_take_turns_among_themselves() -> None:
    turns: WaitingTurns[int] = WaitingTurns()
    for number, owner in enumerate((("k", "x"), ("k", "x"), ("k", "y"), ("", "z"))):
        turns.add(owner, number)
    assert (len(turns), turns.waiting(("k",)), [*turns]) == (4, 3, [0, 1, 2, 3])
    last: Owner = ()
    taken: list[int] = []
    while (found := turns.next(anybody, last)) is not None:
        last = found[0]
        turns.take(*found)
        taken.append(found[1])
    assert taken == [0, 3, 2, 1]


async def test_a_queue_leaves_room_and_turns_to_others() -> None:
    queue: FairQueue[str] = FairQueue(4, 4, lambda item: item[0])
    for number in range(6):
        assert queue.may_add("a")
        queue.add(f"a{number}")
    assert not queue.may_add("a")
    queue.add("b0")
    assert queue.withdraw("a5")
    assert not queue.withdraw("a5")
    taken = [await queue.take() for _ in range(4)]
    assert taken == ["a0", "b0", "a1", "a2"]
    assert queue.waiting == ("a3", "a4")
    for item in taken:
        assert item in queue.running
        queue.done(item)
    assert [await queue.take(), await queue.take()] == ["a3", "a4"]
    assert {*queue.abandon()} == {"a3", "a4"}
    assert not queue.running


async def test_whoever_takes_waits_until_there_is_something_to_do() -> None:
    queue: FairQueue[str] = FairQueue(1, 1, lambda item: item[0])
    taken: list[str] = []

    async def take() -> None:
        taken.append(await queue.take())
        taken.append(await queue.take())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take)
        await trio.testing.wait_all_tasks_blocked()
        queue.add("a0")
        queue.add("b0")
        assert not queue.may_add("c")
        await trio.testing.wait_all_tasks_blocked()
        assert taken == ["a0"]
        queue.done("a0")
    assert taken == ["a0", "b0"]


class Crowd:
    """Tasks that hold a place until they are let go."""

    def __init__(self, nursery: trio.Nursery, most: int) -> None:
        self._nursery = nursery
        self._limiter = FairLimiter(most)
        self.inside: list[str] = []
        self.scopes: dict[str, trio.CancelScope] = {}

    async def enter(self, *names: str) -> None:
        """Have tasks ask for a place, in order; a name is an owner and a number."""
        for name in names:
            self.scopes[name] = trio.CancelScope()
            self._nursery.start_soon(self._hold, name)
            await trio.testing.wait_all_tasks_blocked()

    async def leave(self, name: str) -> None:
        self.scopes[name].cancel()
        await trio.testing.wait_all_tasks_blocked()

    async def _hold(self, name: str) -> None:
        with self.scopes[name]:
            async with self._limiter.place(name.rstrip("0123456789")):
                self.inside.append(name)
                try:
                    await trio.sleep_forever()
                finally:
                    self.inside.remove(name)


async def test_one_owner_leaves_a_place_to_others() -> None:
    async with trio.open_nursery() as nursery:
        crowd = Crowd(nursery, 4)
        await crowd.enter("a1", "a2", "a3", "a4", "b1")
        assert crowd.inside == ["a1", "a2", "a3", "b1"]
        await crowd.leave("b1")
        assert crowd.inside == ["a1", "a2", "a3"]
        await crowd.leave("a1")
        assert crowd.inside == ["a2", "a3", "a4"]
        nursery.cancel_scope.cancel()


@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=25),
)
async def test_one_place_is_anybody_s_next_and_of_several_nobody_holds_all(
    most: int, steps: list[tuple[str, bool]]
) -> None:
    async with trio.open_nursery() as nursery:
        crowd, waiting = Crowd(nursery, most), list[str]()
        for number, (owner, enters) in enumerate(steps):
            before = list(crowd.inside)
            if enters or not before:
                waiting.append(f"{owner}{number}")
                await crowd.enter(waiting[-1])
            else:
                await crowd.leave(before[0])
            begun = [each for each in waiting if each in crowd.inside]
            waiting = [each for each in waiting if each not in begun]
            held = Counter(each[0] for each in crowd.inside)
            assert most == 1 or all(count < most for count in held.values())
            if not enters and most == 1 and before and begun:
                others = {each[0] for each in (*waiting, *begun)} - {before[0][0]}
                assert not others or begun[0][0] in others
            newcomers = {each[0] for each in waiting} - {*held}
            assert not newcomers or len(crowd.inside) == most, "a place stays free"
        nursery.cancel_scope.cancel()


async def test_whoever_waits_has_the_next_place_however_much_another_asks() -> None:
    async with trio.open_nursery() as nursery:
        crowd = Crowd(nursery, 1)
        await crowd.enter("a1", "a2", "a3", "b1", "b2")
        for held in ("a1", "b1", "a2", "b2"):
            assert crowd.inside == [held]
            await crowd.leave(held)
        assert crowd.inside == ["a3"]
        nursery.cancel_scope.cancel()


async def test_whoever_gives_up_waiting_holds_no_place() -> None:
    async with trio.open_nursery() as nursery:
        crowd = Crowd(nursery, 1)
        await crowd.enter("a1", "b1", "c1")
        await crowd.leave("b1")
        await crowd.leave("a1")
        assert crowd.inside == ["c1"]
        nursery.cancel_scope.cancel()


async def test_a_place_given_in_the_moment_of_giving_up_is_given_on() -> None:
    async with trio.open_nursery() as nursery:
        crowd = Crowd(nursery, 1)
        await crowd.enter("a1", "b1", "c1")
        crowd.scopes["a1"].cancel()
        crowd.scopes["b1"].cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert crowd.inside == ["c1"]
        nursery.cancel_scope.cancel()


async def test_nobody_in_particular_may_hold_all() -> None:
    async with trio.open_nursery() as nursery:
        crowd = Crowd(nursery, 4)
        await crowd.enter("1", "2", "3", "4", "5")
        assert crowd.inside == ["1", "2", "3", "4"]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("most", [1, 3])
async def test_a_place_is_free_again_when_its_block_fails(most: int) -> None:
    limiter = FairLimiter(most)
    for _ in range(2 * most):
        with pytest.raises(ZeroDivisionError):
            async with limiter.place("a"):
                raise ZeroDivisionError
