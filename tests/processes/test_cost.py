"""Holds the cost of a message to what it was when it was counted last."""

from __future__ import annotations

from functools import cache

import msgspec
import pytest

from benchmarks.cost import ledger
from benchmarks.cost.counting import Counts
from benchmarks.cost.ledger import NAMES, START, Bounds, Raised, grown, here, saved

LONG = ("conversation 100", "conversation 1000")
"""Counted in the second tier; what grows with a conversation has grown after ten."""

CHEAPER = Counts(calls=90, library_calls=40, syncs=2)
COUNTED = Counts(calls=100, library_calls=50, syncs=2)
DEARER = Counts(calls=101, library_calls=50, syncs=2)


def bounds(counts: Counts) -> Bounds:
    """Make bounds of one scene with one stage."""
    python, libraries = here()
    return Bounds(python, libraries, {"direct": {"to the model": counts}})


def counted(counts: Counts) -> dict[str, dict[str, Counts]]:
    return {"direct": {"to the model": counts}}


@cache
def measured(scene: str) -> dict[str, dict[str, Counts]]:
    """Count a scene, once for all tests."""
    return ledger.measure([scene])


@pytest.mark.parametrize("scene", [name for name in NAMES if name not in LONG])
def test_no_message_costs_more_than_before(scene: str) -> None:
    more = list(grown(ledger.load(), measured(scene)))
    assert not more, "\n".join((*more, ledger.ADVICE))


@pytest.mark.deep
@pytest.mark.timeout(300)
@pytest.mark.parametrize("scene", LONG)
def test_nor_does_one_after_many_exchanges(scene: str) -> None:
    more = list(grown(ledger.load(), measured(scene)))
    assert not more, "\n".join((*more, ledger.ADVICE))


def test_there_are_bounds_of_every_scene() -> None:
    assert ledger.load().scenes.keys() == set(NAMES)


@pytest.mark.parametrize("scene", ["direct", "tool", "group", *LONG])
def test_a_message_waits_for_few_flushes_however_long_its_conversation(
    scene: str,
) -> None:
    stages = ledger.load().scenes[scene]
    short = ledger.load().scenes["conversation 10"]
    assert stages["to the model"].waits <= short["to the model"].waits


def test_a_message_after_a_thousand_exchanges_costs_what_one_after_ten_does() -> None:
    scenes = ledger.load().scenes
    short, long = (ledger.total(scenes[f"conversation {n}"]) for n in (10, 1000))
    assert long.calls <= 1.03 * short.calls
    assert long.deliveries <= short.deliveries + 1  # a sweep may fall into it
    assert (long.commits, long.syncs) == (short.commits, short.syncs)
    # More pages than at first, until each index has its own for each kind of row.
    assert long.bytes_written <= 1.5 * short.bytes_written


def test_one_call_more_is_told_with_its_place_and_what_to_do() -> None:
    assert list(grown(bounds(COUNTED), counted(DEARER))) == [
        "direct, to the model: calls 100 → 101"
    ]
    with pytest.raises(ValueError, match=r"100 → 101\n.*--because"):
        saved(bounds(COUNTED), counted(DEARER), "")


def test_a_stage_that_is_new_has_no_bounds_yet() -> None:
    new = {"direct": {"on the moon": Counts(calls=1)}}
    assert list(grown(bounds(COUNTED), new)) == ["direct, on the moon: calls 0 → 1"]


def test_a_lower_count_is_taken_over_without_a_reason() -> None:
    lowered = saved(bounds(COUNTED), counted(CHEAPER), "")
    assert lowered.scenes == counted(CHEAPER)
    assert lowered.raised == ()


def test_a_higher_one_is_taken_over_with_its_reason() -> None:
    raised = saved(bounds(COUNTED), counted(DEARER), "it reads the moon")
    assert raised.scenes == counted(DEARER)
    what = "direct, to the model: calls 100 → 101"
    assert raised.raised == (Raised(what, "it reads the moon"),)


def test_calls_in_other_releases_of_libraries_are_not_compared() -> None:
    more = counted(Counts(calls=100, library_calls=51, syncs=2))
    assert list(grown(bounds(COUNTED), more))
    elsewhere = msgspec.structs.replace(bounds(COUNTED), python="3.99.0")
    assert not list(grown(elsewhere, more))
    assert list(grown(elsewhere, counted(DEARER)))


def test_a_start_may_make_a_hundredth_more_calls_but_load_no_module_more() -> None:
    python, libraries = here()
    most = {START: {"ready": Counts(calls=1000, modules=10, library_modules=20)}}
    bound = Bounds(python, libraries, most)
    busy = {START: {"ready": Counts(calls=1010, modules=10, library_modules=20)}}
    assert not list(grown(bound, busy))
    assert saved(bound, busy, "").scenes == most
    more = {START: {"ready": Counts(calls=1011, modules=11, library_modules=21)}}
    assert list(grown(bound, more)) == [
        "start, ready: calls 1000 → 1011",
        "start, ready: modules 10 → 11",
        "start, ready: library_modules 20 → 21",
    ]


def test_the_same_is_counted_each_time() -> None:
    assert ledger.measure(["direct"]) == measured("direct")
