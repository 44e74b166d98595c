"""Proves that the files of `callboard init` come all or not at all."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from connectors.commands.init.main import NewFile, place, staged

NAMES = ("agents/anna/SOUL.md", "secrets/key", "deep/er/file", "callboard.toml")
FILES = tuple(NewFile(name, f"text of {name}", name == "secrets/key") for name in NAMES)


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text() if path.is_file() else "folder"
        for path in folder.rglob("*")
    }


def put(folder: Path, replaces: frozenset[str] = frozenset()) -> None:
    with staged(folder, FILES) as source:
        place(source, folder, FILES, replaces=replaces)


@given(there=st.sets(st.sampled_from(NAMES)))
def test_one_that_is_there_keeps_all_others_away(there: set[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for each in there:
            (folder / each).parent.mkdir(parents=True, exist_ok=True)
            (folder / each).write_text("mine")
        before = contents(folder)
        if there:
            with pytest.raises(FileExistsError):
                put(folder)
            assert contents(folder) == before
        else:
            put(folder)
            assert set(contents(folder)) >= set(NAMES)


def test_what_may_be_replaced_is(tmp_path: Path) -> None:
    (tmp_path / "callboard.toml").write_text("mine")
    put(tmp_path, frozenset({"callboard.toml"}))
    assert contents(tmp_path)["callboard.toml"] == "text of callboard.toml"
    assert not [name for name in contents(tmp_path) if name.startswith(".")]


def test_secrets_are_their_owners_alone(tmp_path: Path) -> None:
    put(tmp_path)
    assert stat.S_IMODE((tmp_path / "secrets" / "key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "secrets").stat().st_mode) == 0o700


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, SystemExit])
def test_whoever_breaks_off_leaves_nothing(
    tmp_path: Path, error: type[BaseException]
) -> None:
    folder = tmp_path / "new" / "place"
    written: list[str] = []

    def break_off() -> None:
        with staged(folder, FILES) as source:
            written.append((source / "secrets" / "key").read_text())
            raise error

    with pytest.raises(error):
        break_off()
    assert written == ["text of secrets/key"]
    assert not contents(tmp_path)


def test_what_is_there_can_be_read_beside_what_is_made(tmp_path: Path) -> None:
    (tmp_path / "agents" / "ben").mkdir(parents=True)
    (tmp_path / "agents" / "ben" / "SOUL.md").write_text("dry")
    with staged(tmp_path, FILES, ["agents/ben", "missing"]) as source:
        assert (source / "agents" / "ben" / "SOUL.md").read_text() == "dry"
    assert contents(tmp_path)["agents/ben/SOUL.md"] == "dry"
