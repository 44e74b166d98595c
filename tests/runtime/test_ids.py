"""Proves that ids are short, sortable, never the same twice, and can be seeded."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from runtime.clock import SystemClock
from runtime.ids import ALPHABET, LAST_MILLISECOND, TAIL_END, IdSource, RandomBytes


class ListedClock:
    """Tells the given times one after the other, then the last for ever."""

    def __init__(self, times: Sequence[float]) -> None:
        self.times = list(times)

    def monotonic(self) -> float:
        return 0.0

    def wall(self) -> float:
        return self.times.pop(0) if len(self.times) > 1 else self.times[0]


def seeded(clock: ListedClock, seed: int = 7) -> IdSource:
    """Make a source whose random bytes are the hashes of seed, seed + 1 and so on."""
    return IdSource(clock, seeded_bytes(seed))


def seeded_bytes(seed: int) -> RandomBytes:
    numbers = itertools.count(seed)

    def random_bytes(count: int) -> bytes:
        return hashlib.sha256(str(next(numbers)).encode()).digest()[:count]

    return random_bytes


def time_of(text: str) -> int:
    milliseconds = 0
    for character in text[:10]:
        milliseconds = milliseconds * 32 + ALPHABET.index(character)
    return milliseconds


@given(ahead=st.floats(0, 2e9), now=st.floats(0, 2e9), seed=st.integers(0, 1000))
def test_ids_go_on_in_their_order_over_a_restart_and_on_another_thread(
    ahead: float, now: float, seed: int
) -> None:
    before = seeded(ListedClock([ahead]), seed)
    made = [before.new() for _ in range(3)]
    clock = ListedClock([now])
    source = IdSource(clock, seeded_bytes(seed + 9), after=made[-1])
    made.append(source.new())
    branch = source.branch()
    made += [branch.new() for _ in range(3)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


@pytest.mark.parametrize("after", ["", "m1", "é" * 26, "Z" * 26, "01" * 12 + "1#"])
def test_what_is_no_id_moves_no_time(after: str) -> None:
    source = IdSource(ListedClock([1_000.0]), after=after)
    assert time_of(source.new()) == 1_000_000


@given(
    times=st.lists(st.floats(0, 2e9), min_size=1, max_size=50),
    seed=st.integers(0, 1000),
)
def test_ids_of_one_source_sort_in_their_order_whatever_the_clock_does(
    times: list[float], seed: int
) -> None:
    source = seeded(ListedClock(times), seed)
    made = [source.new() for _ in range(60)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert all(len(each) == 26 and set(each) <= set(ALPHABET) for each in made)


@given(milliseconds=st.integers(0, LAST_MILLISECOND))
def test_an_id_begins_with_its_time(milliseconds: int) -> None:
    made = seeded(ListedClock([(milliseconds + 0.5) / 1000])).new()
    # A float of the far future is exact to a few milliseconds only.
    assert abs(time_of(made) - milliseconds) <= milliseconds / 2**50


def test_the_specification_s_example_time_is_written_as_there() -> None:
    # Source: github.com/ulid/spec, README: ulid(1469918176385) is 01ARYZ6S41….
    assert seeded(ListedClock([1469918176.3855])).new()[:10] == "01ARYZ6S41"


def test_a_seeded_source_makes_the_same_ids_again() -> None:
    first, again = (seeded(ListedClock([1.0])) for _ in range(2))
    assert [first.new() for _ in range(5)] == [again.new() for _ in range(5)]


def test_two_sources_never_make_the_same_id() -> None:
    clock = ListedClock([1.0])
    sources = [IdSource(clock) for _ in range(50)]
    made = [source.new() for source in sources for _ in range(20)]
    assert len(set(made)) == 1000


def test_order_holds_when_the_numbers_of_a_millisecond_are_used_up() -> None:
    source = IdSource(ListedClock([1.0]), lambda count: b"\xff" * count)
    last = ""
    for _ in range(TAIL_END // 2 + 10):
        made = source.new()
        assert made > last
        last = made
    assert time_of(last) == 1001


def test_the_machine_s_clocks_go_on() -> None:
    clock = SystemClock()
    first = clock.monotonic()
    assert clock.monotonic() >= first
    assert clock.wall() > 1_700_000_000
