"""Proves that the benchmarks all run, and that their arithmetic can be believed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from benchmarks.__main__ import main, read_arguments
from benchmarks.arithmetic import (
    Summary,
    is_worse,
    median_times_better,
    percentile,
    summarise,
    times_better,
)
from benchmarks.figure import OURS, Benchmark, Figure, Plan
from benchmarks.fresh import in_fresh_process
from benchmarks.kernel.bench_million import live
from benchmarks.peers import installed as peers
from benchmarks.record import Machine, Record, Setting, compared, line, load, save
from benchmarks.registry import BENCHMARKS
from benchmarks.runner import Options, records, run
from benchmarks.table import table

FOLDER = Path(peers.__file__).parents[1]
QUICKEST = {"ask", "line", "markup", "ring", "start", "tell"}
QUICK = Options(runs=1, is_quick=True)
HERE = Setting(
    seed=1,
    machine=Machine(cpu="abacus", cores=2, system="wood", load=0.0),
    python="3.11.0",
    versions={"callboard": "0.1.0"},
    commit="none",
    gc="on",
)
numbers = st.floats(min_value=0.001, max_value=1e9)


def quiet(_text: str) -> None:
    """Hear of the progress and say nothing."""


def record(median: float, *, unit: str = "messages/s", spread: float = 0.0) -> Record:
    """Make a record of our own `tell`."""
    return Record(
        benchmark="tell",
        subject=OURS,
        figure="rate",
        unit=unit,
        median=median,
        min=median - spread,
        max=median + spread,
        runs=5,
        **msgspec.structs.asdict(HERE),
    )


def benchmark(measure: Callable[[Plan], list[Figure]]) -> Benchmark:
    """Make a benchmark of one function."""
    return Benchmark("toy", "a toy", Plan(10, 1), Plan(1, 1), measure)


# --- arithmetic -------------------------------------------------------------------


@given(st.lists(numbers, min_size=1))
def test_the_median_lies_inside_the_spread(values: list[float]) -> None:
    summary = summarise(values)
    assert summary.lowest <= summary.median <= summary.highest
    assert summary.runs == len(values)
    assert {summary.lowest, summary.highest} <= set(values)


def test_nothing_measured_is_no_figure() -> None:
    with pytest.raises(ValueError, match="no round"):
        summarise([])
    with pytest.raises(ValueError, match="share"):
        percentile([], 0.5)


@given(st.lists(numbers, min_size=1), st.floats(min_value=0, max_value=1))
def test_a_percentile_is_one_of_the_values(values: list[float], share: float) -> None:
    found = percentile(values, share)
    below = sum(value <= found for value in values)
    assert found in values
    assert below >= share * len(values)


def test_percentiles_of_a_hundred_values() -> None:
    values = list(range(100, 0, -1))
    assert percentile(values, 0.5) == 51
    assert percentile(values, 0.99) == 100
    assert percentile(values, 0.0) == 1


def test_better_means_more_for_rates_and_less_for_times() -> None:
    assert times_better(30, 10, more_is_better=True) == 3
    assert times_better(10, 30, more_is_better=False) == 3


def test_rounds_are_compared_with_their_neighbours() -> None:
    ours, theirs = [10.0, 40.0, 60.0], [10.0, 20.0, 20.0]
    assert median_times_better(ours, theirs, more_is_better=True) == 2
    with pytest.raises(ValueError, match="zip"):
        median_times_better(ours, [1.0], more_is_better=True)


@pytest.mark.parametrize(
    ("now", "worse"),
    [
        pytest.param(Summary(50, 40, 60, 5), True, id="far below"),
        pytest.param(Summary(95, 90, 99, 5), False, id="inside the spread"),
        pytest.param(Summary(50, 40, 110, 5), False, id="too uncertain to tell"),
        pytest.param(Summary(200, 190, 210, 5), False, id="better"),
    ],
)
def test_only_what_the_spread_does_not_explain_is_slower(
    now: Summary, *, worse: bool
) -> None:
    before = Summary(100, 80, 120, 5)
    assert is_worse(now, before, more_is_better=True) is worse


def test_a_longer_time_is_slower() -> None:
    before, now = Summary(10, 9, 11, 5), Summary(20, 19, 21, 5)
    assert is_worse(now, before, more_is_better=False)
    assert not is_worse(before, now, more_is_better=False)


# --- runs -------------------------------------------------------------------------


@pytest.mark.deep
def test_subjects_take_turns_after_a_round_that_is_not_counted() -> None:
    turns: list[str] = []

    def ours(plan: Plan) -> list[Figure]:
        turns.append("A")
        return [Figure("rate", 30.0 * plan.size, "things/s")]

    def theirs(plan: Plan) -> list[Figure]:
        turns.append("B")
        return [Figure("rate", 10.0 * plan.size, "things/s")]

    peer = peers.Peer("other", {"toy": theirs}, share=0.5)
    measured = run(benchmark(ours), [peer], Options(runs=3), quiet)
    mine, other = records("toy", measured, HERE)
    assert "".join(turns) == "AB" * 4
    assert (mine.median, mine.runs, mine.times_better) == (300, 3, None)
    assert (other.median, other.subject, other.times_better) == (50, "other", 6)


def test_a_record_is_one_line_of_json_with_all_that_was_agreed() -> None:
    kept = json.loads(line(record(1.5)))
    assert "\n" not in line(record(1.5))
    assert set(kept) == {
        *("benchmark", "subject", "figure", "unit", "median", "min", "max", "runs"),
        *("seed", "machine", "python", "versions", "commit", "gc"),
    }
    assert set(kept["machine"]) == {"cpu", "cores", "system", "load"}


def test_a_slowdown_is_told_on_the_record_and_nothing_fails() -> None:
    slower = compared(record(50, spread=1), [record(100, spread=1)])
    assert (slower.against_baseline, slower.is_slower) == (0.5, True)
    faster = compared(record(5, unit="s"), [record(10, unit="s")])
    assert (faster.against_baseline, faster.is_slower) == (2, False)
    assert compared(record(5), []).against_baseline is None


def test_a_baseline_keeps_what_was_not_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    other = msgspec.structs.replace(record(1), figure="other")
    save(path, [record(100), other])
    save(path, [compared(record(50), load(path))])
    assert load(path) == [record(50), other]


def test_the_table_names_figures_and_says_where_they_come_from() -> None:
    peer = msgspec.structs.replace(record(10), subject="other", times_better=4.25)
    drawn = table([record(1234567, spread=10), peer])
    assert "| tell | rate | callboard | 1,234,567 messages/s |" in drawn
    assert "| 4.25x |" in drawn
    assert drawn.count("abacus") == 1


def test_the_kept_baseline_can_be_read_and_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(read_arguments(["tell", "--show", str(FOLDER / "baseline.json"), "--table"]))
    assert "| tell | rate | callboard |" in capsys.readouterr().out


@pytest.mark.deep
def test_a_run_prints_one_line_for_each_figure(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    kept = tmp_path / "kept.json"
    main(read_arguments(["tell", "--quick", "--save", str(kept)]))
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(each)["figure"] for each in lines] == [
        "rate",
        "rate with back-pressure",
    ]
    main(read_arguments(["tell", "--quick", "--compare", str(kept)]))
    printed = capsys.readouterr()
    assert json.loads(printed.out.splitlines()[0])["against_baseline"] > 0
    assert "times as good as the baseline" in printed.err


def test_a_benchmark_nobody_knows_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        read_arguments(["tel"])
    assert "known: tell" in capsys.readouterr().err


def test_a_round_can_be_given_another_size() -> None:
    options = read_arguments(["soak", "--size", "1000000"]).options
    assert options.size == 1_000_000
    assert read_arguments([]).options.size is None
    sizes: list[int] = []

    def measure(plan: Plan) -> list[Figure]:
        sizes.append(plan.size)
        return [Figure("size", plan.size, "messages")]

    run(benchmark(measure), [], Options(runs=1, is_quick=True, size=7), quiet)
    run(benchmark(measure), [], QUICK, quiet)
    assert sizes == [7, 1]


def test_fewer_than_five_rounds_are_no_measurement() -> None:
    assert read_arguments(["--runs", "1"]).options.runs == 5


# --- each benchmark ---------------------------------------------------------------


def test_every_file_of_a_benchmark_is_registered_under_its_name() -> None:
    files = {path.stem.removeprefix("bench_") for path in FOLDER.glob("*/bench_*.py")}
    assert files == set(BENCHMARKS)


def test_every_file_of_a_peer_is_known_and_measures_known_benchmarks() -> None:
    files = {f"benchmarks.peers.{x.stem}" for x in FOLDER.glob("peers/peer_*.py")}
    assert files == set(peers.MODULES.values())
    installed, missing = peers.load()
    assert len(installed) + len(missing) == len(peers.MODULES)
    assert all("pip install" in text for text in missing)
    assert {"pykka-threads", "trio-channel"} <= {peer.name for peer in installed}
    assert all(set(peer.rounds) <= set(BENCHMARKS) for peer in installed)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.deep] * (name not in QUICKEST))
        for name in sorted(BENCHMARKS)
    ],
)
def test_a_benchmark_runs(name: str) -> None:
    measured = run(BENCHMARKS[name], [], QUICK, quiet)
    figures = list(records(name, measured, HERE))
    assert figures
    assert all(figure.median > 0 for figure in figures)


def test_a_round_in_a_fresh_process_gives_its_figures() -> None:
    figures = in_fresh_process(live, Plan(10, 1))
    names = ["start", "tell each once", "end with the system", "all", "peak memory"]
    assert [figure.name for figure in figures] == names
