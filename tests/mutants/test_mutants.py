"""Keeps the mutants true: their lines stand where they say, and their tests exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.mistake import Mutant
from tests.mutants.mutants import MUTANTS

ROOT = Path(__file__).parents[2]
NAMES = [mutant.name for mutant in MUTANTS]


@pytest.mark.parametrize("mutant", MUTANTS, ids=NAMES)
def test_a_mutant_changes_exactly_one_place(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.before) == 1
    assert mutant.before != mutant.after


@pytest.mark.parametrize("mutant", MUTANTS, ids=NAMES)
def test_the_tests_of_a_mutant_exist(mutant: Mutant) -> None:
    assert all((ROOT / each.partition("::")[0]).exists() for each in mutant.tests)


def test_there_are_at_least_fourteen() -> None:
    assert len(set(NAMES)) == len(NAMES) >= 14
