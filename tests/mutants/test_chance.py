"""Mistakes at random lines: which are made, which not, and what becomes of them."""

from __future__ import annotations

import ast
import random  # noqa: TID251  for dice with a seed alone
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.blocks import MARKS, Blocks, block_at, blocks_of
from tests.mutants.chance import draw, slips
from tests.mutants.likely import Likely, said_in
from tests.mutants.nearest import Nearest, files_of_tests, note
from tests.mutants.sampled import (
    Outcome,
    attempt,
    copy_of,
    refusal,
    unused_name,
    verdict,
)
from tests.mutants.warm import Warm

ROOT = Path(__file__).parents[2]

COPIED = ("pyproject.toml", "tests/conftest.py", "tests/support", "tests/mutants")

PROGRAM = b"""
from __future__ import annotations

__all__ = ("room_for", 3)
MOST = 3
MOST_BYTES = 4 * 6 * 10
SOON = 0.1
LOOK_EVERY = 1.0
NONE = 0


def room_for(count: Literal[5], log: Log, *, most: int = 9) -> bool:
    \"\"\"Tell whether 7 more fit.\"\"\"
    if count < 0 and not log:
        super().__init__()
        super().__init__(f"{count} is too few")
        raise ValueError(f"{count} is less than {0}")
    log.info("asked", count=count + 4)
    log.take(count, at=2)
    return count <= MOST


async def go(log: Log) -> None:
    zip(log, log, strict=True)
    dataclass(frozen=True)
    option("--room", help="who goes in")
    log.room = None
    \"\"\"Where there is any.\"\"\"
    log.fault("gone", log)
    if log.room is None:
        log.info("no room", log)
    del log
"""

MADE = {
    ("negation", "(not (count < 0 and (not log)))"),
    ("comparison", "(count <= 0)"),
    ("constant", "1"),
    ("and/or", "((count < 0) or (not log))"),
    ("negation", "(log)"),
    ("early return", "return\n    "),
    ("deleted call", "pass"),
    ("dropped argument", "log.take(count)"),
    ("constant", "3"),
    ("return value", "return None"),
    ("comparison", "(count < MOST)"),
    ("dropped argument", "zip(log, strict=True)"),
}


def test_each_kind_of_mistake_is_made_and_none_in_types_logs_or_errors() -> None:
    assert {(slip.kind, slip.after) for slip in slips("a.py", PROGRAM)} == MADE


def test_what_stands_in_no_function_tells_what_it_gives_a_value_to() -> None:
    names = {slip.name for slip in slips("a.py", PROGRAM)}
    assert names == {"", "NONE"}


def test_a_mistake_knows_the_function_that_it_stands_in() -> None:
    places = {slip.inside for slip in slips("a.py", PROGRAM)}
    assert places == {(), ("room_for",), ("go",)}


@pytest.fixture(scope="module")
def likely() -> Likely:
    return Likely(ROOT)


def test_texts_of_a_function_and_of_its_constants_are_known() -> None:
    text = '''
GREETING = "Good morning to you."
OTHER = "Nobody asked for this."


def greet(name: str) -> str:
    """Greet."""
    return GREETING if name else f"{name} is nobody we know"
'''
    assert said_in(text, 8) == {"Good morning to you.", " is nobody we know"}


def dice(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311  repeatable, no secret


def test_each_mistake_leaves_a_program() -> None:
    for slip in draw(ROOT, "runtime/actor", 100, dice(5)):
        made = slip.make((ROOT / slip.file).read_bytes())
        compile(made, slip.file, "exec")


def test_a_seed_draws_the_same_lines_and_each_once() -> None:
    first, again, other = (
        draw(ROOT, "runtime/actor", 50, dice(seed)) for seed in (1, 1, 2)
    )
    assert first == again != other
    assert len({(slip.file, slip.lines[0]) for slip in first}) == 50
    assert all(slip.file.startswith("runtime/actor/") for slip in first)


@pytest.mark.parametrize(
    ("file", "function", "found"),
    [
        # It bears the same name.
        ("runtime/actor/mailbox.py", "put", "tests/runtime/actor/test_mailbox.py"),
        # It is about the same, which no import and no name says.
        (
            "actors/session/queue.py",
            "_inject",
            "tests/stories/session/test_busy_policies.py",
        ),
        # What it expects stands in a file beside it.
        (
            "connectors/settings/checks/access.py",
            "check_group_patterns",
            "tests/connectors/config/test_complaints.py",
        ),
        # It starts another process.
        (
            "connectors/commands/forget_person.py",
            "erase",
            "tests/processes/operating/test_forgetting.py",
        ),
    ],
)
def test_what_bears_its_name_or_speaks_of_the_same_is_likely_to_find_it(
    likely: Likely, file: str, function: str, found: str
) -> None:
    its = [s for s in slips(file, (ROOT / file).read_bytes()) if function in s.inside]
    assert found in likely.to(its[0])[:20]


def test_files_that_name_a_function_are_known_if_they_are_few(likely: Likely) -> None:
    file = "actors/agents/persona.py"
    slip = slips(file, (ROOT / file).read_bytes())[0]
    rare, usual = (
        likely.naming(slip._replace(inside=("Persona", name)))
        for name in ("known_as", "start")
    )
    assert "tests/actors/agents/test_display_names.py" in rare
    assert usual == set()


def test_what_runs_in_the_tests_own_process_is_noted_wherever_it_stands() -> None:
    files = set(files_of_tests(ROOT))
    assert "tests/processes/test_play.py" in files
    assert any(each.startswith("tests/house/kernel/") for each in files)
    assert not files & {"tests/processes/test_cost.py", "tests/house/test_docs.py"}


def test_every_test_file_may_find_a_mistake(likely: Likely) -> None:
    slip = draw(ROOT, "actors", 1, dice(3))[0]
    assert set(files_of_tests(ROOT)) <= set(likely.to(slip))


@pytest.mark.parametrize(
    ("test", "word"),
    [
        ("assert not room_for(4, Log())", "found"),
        ("assert room_for(1, Log())", "survived"),
        ("while room_for(4, Log()): pass", "hung"),
    ],
)
def test_a_mistake_is_found_survives_or_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, test: str, word: str
) -> None:
    monkeypatch.setattr("tests.mutants.sampled.HANGS", 1)
    at = copy_of(ROOT, COPIED, tmp_path / "copy")
    (at / "a.py").write_bytes(PROGRAM)
    (at / "tests" / "test_a.py").write_text(
        "from a import room_for\n"
        "class Log:\n    def take(self, *_: int, at: int) -> None: ...\n"
        "    def info(self, _: str, count: int) -> None: ...\n"
        f"def test_it() -> None:\n    {test}\n"
    )
    slip = next(s for s in slips("a.py", PROGRAM) if s.after == "return None")
    slip = slip._replace(after="return True")
    warm = Warm(at)
    (at / "tests" / "test_endless.py").write_text("while True: pass\n")
    assert warm.run(("tests/test_endless.py",), 0.0) is None
    assert warm.run(("--version",), 60.0) == 0
    assert attempt(warm, slip, ["tests/test_a.py::test_it"]).word == word
    warm.close()
    assert (at / "a.py").read_bytes() == PROGRAM


BRANCHES = b"""
class Count:
    def to(self, most):
        \"\"\"Count.\"\"\"
        found = 0
        for each in range(most):
            if each == 3:
                break
            elif each == 2:
                found += 10
            found += 1
        else:
            found += 100
        try:
            [][most]
        except IndexError:
            found += 1000

        def last():
            return found

        return last()
"""


def test_the_blocks_that_run_are_marked_and_nothing_else_changes() -> None:
    blocks = Blocks()
    tree = blocks.visit(ast.parse(BRANCHES))
    ran = bytearray(len(blocks.found))
    plain: dict[str, Any] = {}
    marked: dict[str, Any] = {MARKS: ran}
    exec(compile(BRANCHES, "a.py", "exec"), plain)  # noqa: S102
    exec(compile(tree, "a.py", "exec"), marked)  # noqa: S102
    always = {2, 4, 6, 8, 11, 12, 14, 16}
    for most, others in ((1, {10}), (3, {7, 10}), (5, {5, 7})):
        ran[:] = bytes(len(ran))
        assert marked["Count"]().to(most) == plain["Count"]().to(most)
        seen = {each for each, byte in zip(blocks.found, ran, strict=True) if byte}
        lines = {each.line for each in seen if each.function == "Count.to"}
        assert lines == always | others
    at = blocks_of(BRANCHES)
    assert block_at(at, 12, "Count.to") == ("Count.to", 8)
    assert block_at(at, 20, "Count.to.last") == ("Count.to.last", 1)


@pytest.mark.deep
def test_the_tests_that_run_a_line_are_noted_and_stay_known(tmp_path: Path) -> None:
    at = copy_of(ROOT, COPIED, tmp_path / "copy")
    (at / "runtime").mkdir()
    (at / "runtime" / "__init__.py").touch()
    program = at / "runtime" / "a.py"
    program.write_bytes(BRANCHES)
    (at / "tests" / "test_a.py").write_text(
        "from runtime.a import Count\n"
        "def test_few() -> None:\n    assert Count().to(1) == 1101\n"
        "def test_many() -> None:\n    assert Count().to(5) == 1013\n"
        "def test_wrong() -> None:\n    assert Count().to(5) == 0\n"
    )
    note(at, tmp_path, ["tests/test_a.py"], 100.0)
    # Another function comes before it, and its page is still known.
    program.write_bytes(b"\ndef new():\n    return 4\n" + BRANCHES)
    nearest = Nearest(at, tmp_path)
    assert nearest.unnoted(["tests/test_a.py", "tests/test_b.py"]) == [
        "tests/test_b.py"
    ]
    nearest.read()
    found = slips("runtime/a.py", program.read_bytes())
    tests = {slip.after: nearest.to(slip) for slip in found}
    few, many = "tests/test_a.py::test_few", "tests/test_a.py::test_many"
    assert tests["2"] == [few, many]
    assert tests["11"] == [many]
    assert tests["4"] == [few, many]
    assert tests["5"] == []


def test_what_survives_those_that_run_its_line_has_survived() -> None:
    slip = slips("a.py", PROGRAM)[0]
    survived, unfinished, hung = (
        Outcome(slip, word, "") for word in ("survived", "unfinished", "hung")
    )
    for outcomes, known, unknown in (
        ((survived, unfinished), survived, unfinished),
        ((survived, hung, unfinished), hung, hung),
        ((unfinished,), unfinished, unfinished),
    ):
        assert verdict(outcomes, is_known=True) == known
        assert verdict(outcomes, is_known=False) == unknown
    assert verdict((), is_known=True) is None


def test_what_leaves_a_name_unused_is_refused(tmp_path: Path) -> None:
    program = (
        b"from math import gcd\n"
        b"def most(count: int, least: int) -> int:\n"
        b"    more = count + 1\n"
        b"    return max(more, gcd(count, least))\n"
    )
    (tmp_path / "a.py").write_bytes(program)
    why = {
        slip.after: unused_name(tmp_path, "a.py", slip.make(program))
        for slip in slips("a.py", program)
    }
    assert why["max(more)"].startswith("a.py:1:18: F401")
    assert why["gcd(count)"].startswith("a.py:2:22: ARG001")
    assert why["return None"].startswith("a.py:1:18: F401")
    assert why["2"] == ""
    assert not unused_name(tmp_path, "a.py", program)


@pytest.mark.deep
def test_what_the_type_checker_refuses_needs_no_test(tmp_path: Path) -> None:
    program = (
        b"def most(count: int, least: int = 1) -> int:\n"
        b"    if count < least:\n"
        b"        return least\n"
        b"    return max(count, least)"
    )
    (tmp_path / "a.py").write_bytes(program)
    made = {slip.after: slip for slip in slips("a.py", program)}
    refused = {after: refusal(tmp_path, made[after], tmp_path) for after in made}
    assert refused["return None"].startswith("a.py:4: error: ")
    assert refused["max(count)"].startswith("a.py:4: error: ")
    assert refused["2"] == ""
