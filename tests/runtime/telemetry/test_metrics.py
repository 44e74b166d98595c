"""Proves that figures are right, bounded, named as Prometheus wants, and ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import cast

import prometheus_client
import pytest
import trio
from hypothesis import given, strategies as st
from prometheus_client.core import Metric
from prometheus_client.openmetrics import parser as open_metrics
from prometheus_client.parser import text_string_to_metric_families
from trio.testing import MockClock

from runtime.errors import MisuseError
from runtime.system import ActorSystem, open_system
from runtime.telemetry.metrics import OTHER, Metrics
from runtime.testing import wait_settled
from tests.support.puppet import Puppet, crash, supervise, virtual


def read(metrics: Metrics) -> dict[str, float]:
    """Give name{labels} → value."""
    families = text_string_to_metric_families(metrics.render().decode())
    return {
        sample.name + ",".join(f" {k}={v}" for k, v in sorted(sample.labels.items())): (
            sample.value
        )
        for family in families
        for sample in family.samples
    }


def test_a_node_is_a_label_of_all_that_is_shown_and_of_nothing_that_is_looked_at() -> (
    None
):
    metrics = Metrics(node="a")
    metrics.counter("made_things", "Things made.", ("kind",)).add(2, "x")
    metrics.histogram("thing_seconds", "Time per thing.").observe(0.5, example="i")
    assert all(" node=a" in each for each in read(metrics))
    assert read(metrics)["made_things_total kind=x, node=a"] == 2
    assert b'made_things_total{kind="x",node="a"}' in metrics.render()
    wanted, _ = metrics.render_as("application/openmetrics-text; version=1.0.0")
    samples = [x for x in wanted.splitlines() if not x.startswith(b"#")]
    assert samples
    assert all(b'node="a"' in each for each in samples)
    assert not any("node" in figure.labels for figure in metrics.figures())


def test_counters_gauges_and_histograms_are_shown() -> None:
    metrics = Metrics()
    counter = metrics.counter("made_things", "Things made.", ("kind",))
    plain = metrics.counter("plain_things", "Things without labels.")
    gauge = metrics.gauge("open_things", "Things open.", ("kind",))
    bare = metrics.gauge("bare_things", "Things.")
    spread = metrics.histogram("thing_seconds", "Time per thing.", ("kind",), (1.0,))
    alone = metrics.histogram("other_seconds", "Time.")
    counter.add(2, "a")
    plain.add(3)
    gauge.set(4, "a")
    bare.set(5)
    spread.observe(0.5, "a")
    alone.observe(0.5)
    shown = read(metrics)
    assert shown["made_things_total kind=a"] == 2
    assert shown["plain_things_total"] == 3
    assert shown["open_things kind=a"] == 4
    assert shown["bare_things"] == 5
    assert shown["thing_seconds_bucket kind=a, le=1.0"] == 1
    assert shown["other_seconds_count"] == 1


def test_too_many_values_of_a_label_are_counted_together() -> None:
    metrics = Metrics(most_values=2)
    counter = metrics.counter("things", "Things.", ("name", "outcome"))
    for number in range(5):
        counter.add(1, str(number), "ok")
        counter.add(1, "0", "failed")
    shown = read(metrics)
    assert shown["things_total name=0, outcome=ok"] == 1
    assert shown["things_total name=0, outcome=failed"] == 5
    assert shown[f"things_total name={OTHER}, outcome=ok"] == 3
    dropped = "callboard_metric_series_dropped_total metric=things_total"
    assert shown[dropped] == 3


def test_a_hundred_agents_are_kept_apart() -> None:
    metrics = Metrics()
    counter = metrics.counter("turns", "Turns.", ("agent", "outcome"))
    for agent in range(100):
        for outcome in ("replied", "failed", "cancelled", "timeout"):
            counter.add(1, f"agent{agent}", outcome)
    turns = {name for name in read(metrics) if name.startswith("turns_total")}
    assert len(turns) == 400
    assert not any(OTHER in name for name in turns)


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6)), max_size=60
    )
)
def test_series_are_bounded_and_their_sum_is_what_was_counted(
    found: list[tuple[int, int, int]],
) -> None:
    metrics = Metrics(most_values=4, most_series=10)
    counter = metrics.counter("things", "Things.", ("a", "b", "c"))
    for labels in found:
        counter.add(1, *map(str, labels))
    things = [v for k, v in read(metrics).items() if k.startswith("things_total")]
    assert sum(things) == len(found)
    assert len(things) <= 11, "ten, and all others"


def test_a_gauge_above_the_bound_is_left_out_not_mixed_up() -> None:
    metrics = Metrics(most_values=1)
    spread = metrics.histogram("thing_seconds", "Time.", ("kind",), (1.0,))
    gauge = metrics.gauge("things", "Things.", ("kind",))
    for value, kind in enumerate(("a", "b", "c", "b", "a")):
        spread.observe(0.5, kind)
        gauge.set(value, kind)
    shown = read(metrics)
    assert shown["thing_seconds_count kind=a"] == 2
    assert shown["thing_seconds_count kind=other"] == 3
    assert shown["things kind=a"] == 4
    assert "things kind=other" not in shown
    dropped = "callboard_metric_series_dropped_total metric=things"
    assert shown[dropped] == 3


def test_what_was_never_dropped_is_not_shown() -> None:
    metrics = Metrics()
    metrics.counter("things", "Things.", ("kind",)).add(1, "a")
    assert not [name for name in read(metrics) if "dropped_total" in name]


def test_openmetrics_shows_an_example_of_each_bucket() -> None:
    metrics = Metrics()
    spread = metrics.histogram("thing_seconds", "Time.", ("kind",), (1.0, 2.0))
    spread.observe(0.5, "a", example="01JABC")
    spread.observe(1.5, "a")
    spread.observe(1.5, "a", example="x" * 200)
    accepted = "application/openmetrics-text;version=1.0.0;q=0.9,text/plain;q=0.1"
    body, kind = metrics.render_as(accepted)
    assert kind.startswith("application/openmetrics-text")
    read_all = cast(
        "Callable[[str], Iterable[Metric]]",
        getattr(open_metrics, "text_string_to_metric_families"),  # noqa: B009  untyped
    )
    families = {each.name: each for each in read_all(body.decode())}
    found = {
        sample.labels["le"]: sample.exemplar
        for sample in families["thing_seconds"].samples
        if sample.name.endswith("_bucket")
    }
    assert found["1.0"]
    assert found["1.0"].labels == {"correlation_id": "01JABC"}
    assert not found["2.0"]
    plain, kind = metrics.render_as("")
    assert kind.startswith("text/plain")
    # The process's own figures (its processor time) move between two looks.
    own = [line for line in metrics.render().splitlines() if b"thing_seconds" in line]
    assert own
    assert own == [line for line in plain.splitlines() if b"thing_seconds" in line]
    assert b"01JABC" not in plain


def test_labels_must_be_those_declared() -> None:
    counter = Metrics().counter("things", "Things.", ("kind",))
    with pytest.raises(MisuseError, match="2 labels given, 1 declared"):
        counter.add(1, "a", "b")


def test_two_registries_know_nothing_of_each_other() -> None:
    for _ in range(2):
        metrics = Metrics()
        metrics.counter("mine", "Mine.")
        with pytest.raises(ValueError, match="Duplicated"):
            metrics.counter("mine", "Mine.")
    assert b"mine_total" not in prometheus_client.generate_latest()


async def test_a_system_is_shown(autojump_clock: MockClock) -> None:
    metrics = Metrics()
    async with virtual(autojump_clock) as system:
        metrics.watch(system)
        with pytest.raises(MisuseError, match="already"):
            metrics.watch(system)
        (ref,) = await supervise(system, Puppet)
        ref.tell(crash)
        ref.tell("one")
        await trio.sleep(10)
        ref.tell("waits")
        shown = read(metrics)
        assert shown["callboard_actors kind=Puppet"] == 1
        assert shown["callboard_mailbox_depth kind=Puppet"] == 1
        restarts = "callboard_actor_restarts_total kind=Puppet, reason=CrashError"
        assert shown[restarts] == 3
        assert shown["callboard_dead_letters_total reason=poison"] == 1
        assert shown["callboard_loop_lag_seconds"] == 0
        assert shown["callboard_run_queue"] == 1
        assert shown["callboard_timers"] == 0
        assert shown["callboard_thread_messages_waiting"] == 0


async def test_what_ended_actors_handled_stays_counted(
    autojump_clock: MockClock,
) -> None:
    metrics = Metrics()
    async with virtual(autojump_clock) as system:
        metrics.watch(system)
        after = 0.0
        for _ in range(3):
            ref = system.spawn(Puppet())
            ref.tell("one")
            await wait_settled(system)
            before = read(metrics)["callboard_actor_messages_total kind=Puppet"]
            await ref.stop()
            after = read(metrics)["callboard_actor_messages_total kind=Puppet"]
            assert before == after
        assert after == 3


async def test_another_thread_may_render() -> None:
    metrics = Metrics()

    def render(system: ActorSystem) -> None:
        for _ in range(50):
            assert system.statistics().actors >= 0
            assert metrics.render()

    async with open_system() as system, trio.open_nursery() as nursery:
        metrics.watch(system)
        nursery.start_soon(trio.to_thread.run_sync, render, system)
        for _ in range(100):
            ref = system.spawn(Puppet())
            await ref.ask("hello")
            await ref.stop()


def test_names_please_prometheus() -> None:
    metrics = Metrics()
    metrics.histogram("callboard_thing_seconds", "Time.").observe(1)
    text = metrics.render().decode()
    assert "_created" not in text
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    helped = set(re.findall(r"^# HELP (\S+) \S", text, re.MULTILINE))
    assert helped == set(kinds)
    for name, kind in kinds.items():
        assert name.endswith("_total") is (kind == "counter")
        assert name.startswith(("callboard_", "process_", "python_"))
