"""Proves that a message really goes the way that the README prints."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import readme

# Step 2 of the way: where a transport hands in what a person wrote.
ACCEPTED = "accept"
# Until the tool has run, each step is reached for the first time in this order;
# from there on a message goes back through files it has been in.
LAST_FIRST_VISIT = 8
# Told of a conversation when it wakes, so before the turn that the way speaks of.
EARLIER = {"actors/agents/agent.py"}
MOST_FILES = 25

NOT_IN_A_DIRECT_CHAT = {
    "actors/agents/staff.py": "answers /who",
    "actors/collaboration/counter.py": "counts the hops of what agents hand on",
}
"""Actors that the README's talk needs beside those of its way, and why."""

BY_THEMSELVES = {
    "actors/memory/memory.py",
    "actors/operations/keeper.py",
    "actors/operations/sweeper.py",
    "actors/people/owners.py",
    "actors/people/pairing.py",
    "actors/schedule/scheduler.py",
}
"""Actors that begin something at the start or by the clock, whoever writes."""


@pytest.fixture(scope="module")
def way() -> list[readme.Step]:
    """Give the steps that the README prints."""
    return readme.steps(readme.read())


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """Give (why, file, function) in the order of the README's own talk."""
    folder: Path = tmp_path_factory.mktemp("walk")
    transcript = readme.transcripts(readme.read())[0]
    arguments = [
        str(readme.ROOT / word) if word.endswith(".toml") else word
        for word in transcript.arguments
    ]
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.support.trace_files",
            str(folder / "notes"),
            *arguments,
        ],
        input="".join(f"{line}\n" for line in transcript.typed),
        cwd=folder,
        env={"PYTHONPATH": str(readme.ROOT), "PATH": "", "STATE_DIRECTORY": "."},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return [line.split() for line in (folder / "notes").read_text().splitlines()]


@pytest.fixture(scope="module")
def visits(notes: list[list[str]]) -> list[tuple[str, str]]:
    """Give (file, function) in the order in which the README's own talk visits them."""
    return [(file, function) for _, file, function in notes]


def since_accepted(
    visits: list[tuple[str, str]], step: readme.Step
) -> tuple[list[str], list[str]]:
    """Split the visited files at the first message that was accepted."""
    place = next(
        index
        for index, (file, function) in enumerate(visits)
        if file in step.files and function == ACCEPTED
    )
    files = [file for file, _ in visits]
    return files[:place], files[place:]


def test_the_way_has_its_steps_in_order(way: list[readme.Step]) -> None:
    assert [step.number for step in way] == list(range(1, 12))


def test_every_file_and_rule_of_the_way_exists(way: list[readme.Step]) -> None:
    named = [file for step in way for file in step.files]
    named += [f"actors/{rule}.py" for step in way for rule in step.rules]
    assert not [name for name in named if not (readme.ROOT / name).is_file()]


def test_the_way_ends_where_it_began(way: list[readme.Step]) -> None:
    assert way[0].files[-1:] == way[-1].files


def test_the_way_is_short(way: list[readme.Step]) -> None:
    files = {file for step in way for file in step.files}
    rules = {rule for step in way for rule in step.rules}
    assert len(files) + len(rules) <= MOST_FILES


def test_no_actor_and_no_port_is_missing(
    way: list[readme.Step], notes: list[list[str]]
) -> None:
    accepted = next(i for i, note in enumerate(notes) if note[2] == ACCEPTED)
    passed = {file for why, file, _ in notes[accepted:] if why != "call"}
    named = {file for step in way for file in step.files}
    assert passed - set(NOT_IN_A_DIRECT_CHAT) - BY_THEMSELVES <= named
    assert set(NOT_IN_A_DIRECT_CHAT) <= passed, "not needed any more"


def test_a_message_comes_in_through_the_first_file(
    way: list[readme.Step], visits: list[tuple[str, str]]
) -> None:
    before, _ = since_accepted(visits, way[1])
    assert set(way[0].files) <= set(before)


def test_a_message_reaches_each_step_after_the_one_before(
    way: list[readme.Step], visits: list[tuple[str, str]]
) -> None:
    _, files = since_accepted(visits, way[1])
    reached = [
        files.index(file)
        for step in way[1:LAST_FIRST_VISIT]
        for file in step.files
        if file not in EARLIER
    ]
    assert all(one < next_one for one, next_one in itertools.pairwise(reached))


def test_the_answer_goes_back_the_way_the_readme_says(
    way: list[readme.Step], visits: list[tuple[str, str]]
) -> None:
    _, files = since_accepted(visits, way[1])
    rest = iter(files)
    expected = [file for step in way[1:] for file in step.files]
    # Each search goes on where the one before stopped, so the order counts.
    missing = [file for file in expected if file not in rest]
    assert not missing


def test_every_rule_named_on_the_way_is_asked(
    way: list[readme.Step], visits: list[tuple[str, str]]
) -> None:
    _, files = since_accepted(visits, way[1])
    rules = {f"actors/{rule}.py" for step in way for rule in step.rules}
    assert not rules - set(files)
