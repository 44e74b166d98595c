"""Proves that a commit and this tree take turns, and what is said of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.against import (
    Comparison,
    Measured,
    checked_out,
    compare,
    needs,
    ratios,
    read_arguments,
    table,
)
from benchmarks.figure import OURS

PROJECT = '[project]\nname = "toy"\ndependencies = ["httpx"]\n'

# Prints its rate and notes its turn beside the repository.
PROGRAM = """
import json, sys
from pathlib import Path
with Path({notes!r}).open("a") as notes:
    print({rate}, *sys.argv[1:], file=notes)
for subject in ("callboard", "a peer"):
    print(json.dumps({{"benchmark": sys.argv[1], "subject": subject, "figure": "rate",
        "unit": "messages/s", "median": {rate}, "min": 1, "machine": {{}}}}))
"""


def git(root: Path, *words: str) -> str:
    """Run git as somebody."""
    who = ("-c", "user.name=sam", "-c", "user.email=sam@example.org")
    done = subprocess.run(
        ["git", "-C", str(root), *who, *words],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Make a repository whose one commit does 100 messages/s, and whose tree 150."""
    root = tmp_path / "toy"
    (root / "benchmarks").mkdir(parents=True)
    program, notes = root / "benchmarks" / "__main__.py", str(tmp_path / "notes")
    (root / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    program.write_text(PROGRAM.format(notes=notes, rate=100), encoding="utf-8")
    git(root, "init", "--quiet")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "Slow")
    program.write_text(PROGRAM.format(notes=notes, rate=150), encoding="utf-8")
    return root


def test_both_take_turns_and_the_commit_leaves_nothing_behind(repository: Path) -> None:
    (found,) = compare(repository, Comparison("HEAD", ["toy"], 2), ["--size", "7"])
    assert (found.before, found.now, found.times.median) == (100, 150, 1.5)
    notes = (repository.parent / "notes").read_text(encoding="utf-8")
    assert notes == "100 toy --size 7\n150 toy --size 7\n" * 2
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_a_commit_with_other_packages_is_noticed(repository: Path) -> None:
    with checked_out(repository, "HEAD") as tree:
        assert needs(tree) == needs(repository)
        (repository / "constraints.txt").write_text("httpx==1", encoding="utf-8")
        assert needs(tree) != needs(repository)


def test_a_commit_nobody_knows_is_told(
    repository: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with (
        pytest.raises(SystemExit, match="'abc' cannot be checked out"),
        checked_out(repository, "abc"),
    ):
        pass
    assert "abc" in capfd.readouterr().err


def seconds(value: float) -> dict[tuple[str, str], Measured]:
    """Make a turn of one time."""
    return {("start", "ready"): Measured("start", OURS, "ready", "s", value)}


def test_neighbours_are_compared_and_a_shorter_time_is_better() -> None:
    nothing: dict[tuple[str, str], Measured] = {}
    pairs = [(seconds(2), seconds(1)), (seconds(9), seconds(3)), (nothing, nothing)]
    assert list(ratios(pairs)) == []  # one turn did not measure it
    (found,) = ratios(pairs[:2])
    assert (found.times.lowest, found.times.highest) == (2, 3)
    drawn = table([found], "9a7c373").splitlines()
    assert "| 9a7c373 |" in drawn[0]
    assert drawn[2] == "| start | ready | 5.5 s | 2 s | 2.5 | 2 to 3 |"
    with pytest.raises(ValueError, match="no turn"):
        list(ratios([]))


def test_words_for_the_benchmarks_are_passed_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    wanted, options = read_arguments(["HEAD~3", "line", "http", "--quick"])
    assert wanted == Comparison("HEAD~3", ["line", "http"], 3)
    assert options == ["--quick"]
    with pytest.raises(SystemExit):
        read_arguments(["HEAD", "line", "--turns", "0"])
    assert "turns" in capsys.readouterr().err
