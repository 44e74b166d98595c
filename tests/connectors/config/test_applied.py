"""Proves what is noted of the settings in use, and that no secret is among it."""

from __future__ import annotations

import os
import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from socket import gethostname

import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.config.agents import AgentConfig
from actors.config.limits import LimitsConfig
from connectors.admin.settings import (
    AppliedFile,
    NotNotedError,
    differences,
    flat,
    path_of,
    read_applied,
    running_elsewhere,
)
from connectors.commands.status import find_running
from connectors.config.app import AppConfig, HttpConfig, StoreConfig
from runtime.secret import Secret

KEY = b"k" * 32


@pytest.fixture(autouse=True)
def nothing_stays_open(tmp_path: Path) -> Generator[None]:
    """Fail a test after which a file of its folder is still open."""
    yield
    handles = [each for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    held = [str(each.readlink()) for each in handles]
    assert not [each for each in held if each.startswith(str(tmp_path))]


texts = st.dictionaries(st.sampled_from("abcde"), st.text(max_size=3), max_size=5)


def keyed(secret: str) -> AppConfig:
    return AppConfig(connectors={"http": HttpConfig(api_key=Secret(secret))})


def test_a_secret_is_not_shown_but_its_change_is() -> None:
    one, other = flat(keyed("first-secret"), KEY), flat(keyed("second-secret"), KEY)
    assert "secret" not in str(one)
    assert "secret" not in str(other)
    changed = differences(one, other)
    assert [line.split(" = ")[0] for line in changed] == [
        "- connectors.http.api_key",
        "+ connectors.http.api_key",
    ]
    assert flat(keyed("first-secret"), b"x" * 32) != one


def test_settings_are_named_as_people_write_them() -> None:
    before = flat(AppConfig(), KEY)
    agents = {"anna": AgentConfig(prompt="Hi.")}
    after = flat(AppConfig(agents=agents, limits=LimitsConfig(max_open=7)), KEY)
    lines = differences(before, after)
    assert "- limits.max_open = 5000" in lines
    assert "+ limits.max_open = 7" in lines
    assert '+ agents.anna.prompt = "Hi."' in lines


@given(texts, texts)
def test_what_differs_is_told_and_nothing_else(
    one: dict[str, str], other: dict[str, str]
) -> None:
    lines = differences(one, other)
    assert (lines == []) == (one == other)
    minus = {x[2] for x in lines if x[0] == "-"}
    plus = {x[2] for x in lines if x[0] == "+"}
    names = one.keys() | other.keys()
    assert minus | plus == {x for x in names if one.get(x) != other.get(x)}
    assert minus <= one.keys()
    assert plus <= other.keys()


def test_what_a_process_goes_by_is_read_while_it_runs(tmp_path: Path) -> None:
    database = tmp_path / "callboard.db"
    assert read_applied(database) is None
    with AppliedFile(database, KEY) as file:
        file.write(AppConfig(limits=LimitsConfig(max_open=7)), 5.0, ({}, "a mistake"))
        file.write(AppConfig(), 6.0, ({"store": "it is open"}, ""))
        found = read_applied(database)
        assert found is not None
        assert (found.at, found.mistake) == (6.0, "")
        assert found.waiting == {"store": "it is open"}
        assert found.settings == flat(AppConfig(), KEY)
        assert path_of(database).stat().st_mode & 0o077 == 0
        with AppliedFile(database, KEY) as second:  # another process would get the same
            second.write(AppConfig(), 7.0, ({}, ""))
        app = AppConfig(store=StoreConfig(path=str(database)))
        assert read_applied(database) == find_running(app) == found
        path_of(database).write_bytes(b"")
        assert find_running(app) is None, "it cannot be read, and another way is tried"
    assert read_applied(database) is find_running(app) is None


def test_nodes_that_share_a_folder_note_their_settings_side_by_side(
    tmp_path: Path,
) -> None:
    database = tmp_path / "callboard.db"
    with (
        AppliedFile(database, KEY, node="a") as a,
        AppliedFile(database, KEY, node="b") as b,
    ):
        a.write(AppConfig(), 5.0, ({}, ""))
        b.write(AppConfig(), 6.0, ({}, ""))
        found = [read_applied(database, node) for node in ("a", "b", "")]
        assert [x and (x.node, x.at) for x in found] == [("a", 5), ("b", 6), ("a", 5)]
        assert read_applied(database, "c") is None
        assert path_of(database, "a").parent.stat().st_mode & 0o077 == 0
        noted = path_of(database, "b")
        elsewhere = noted.read_bytes().replace(gethostname().encode(), b"another")
    assert read_applied(database, "b") is read_applied(database) is None
    with AppliedFile(database, KEY, node="b"):
        noted.write_bytes(elsewhere)  # a lock on a shared mount holds for all machines
        assert read_applied(database) is None
        assert read_applied(database, "b") is not None


def test_a_setting_is_as_it_is_since_it_changed_last(tmp_path: Path) -> None:
    database = tmp_path / "callboard.db"
    with AppliedFile(database, KEY) as file:
        for at, most in ((5.0, 7), (6.0, 8), (7.0, 8)):
            file.write(
                AppConfig(limits=LimitsConfig(max_open=most)), at, ({}, "a mistake")
            )
        found = read_applied(database)
    assert found is not None
    assert (found.start, found.since) == (5.0, {"limits.max_open": 6.0})
    assert found.since_of("limits.max_open") == found.since_of("limits") == 6.0
    assert found.since_of("limits.max") == found.since_of("log.level") == 5.0


@contextmanager
def room_for(size: int) -> Generator[None]:
    """Let no file of this process grow beyond so many bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", [0, 100])
@pytest.mark.parametrize("is_first", [True, False])
def test_what_cannot_be_noted_is_not_noted_by_halves(
    tmp_path: Path, room: int, *, is_first: bool, caplog: pytest.LogCaptureFixture
) -> None:
    database = tmp_path / "callboard.db"
    with AppliedFile(database, KEY) as file:
        if not is_first:
            file.write(AppConfig(), 5.0, ({}, ""))
        with room_for(room):
            file.write(keyed("first-secret"), 6.0, ({}, ""))
        assert path_of(database).stat().st_size == 0
        assert "settings in use not noted" in caplog.text
        with pytest.raises(NotNotedError, match=r"is empty\. .* make room and save"):
            read_applied(database)
        file.write(AppConfig(), 7.0, ({}, ""))
        found = read_applied(database)
        assert found is not None
        assert found.at == 7.0
    assert read_applied(database) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("callboard.db", "off/other.db"),
        ("off/other.db", "callboard.db"),
        ("../far/one.db", "../far/other.db"),
    ],
)
def test_who_runs_with_what_the_settings_said_before_is_found(
    tmp_path: Path, old: str, new: str
) -> None:
    home = tmp_path / "home"
    for folder in (home / "off", tmp_path / "far"):
        folder.mkdir(parents=True)
    source, database = home / "callboard.toml", home / old
    with AppliedFile(database, KEY, source) as file:
        assert running_elsewhere(source, home / new) is None
        file.write(AppConfig(), 5.0, ({}, ""))
        left = path_of(database).read_bytes()
        assert running_elsewhere(source, database) is None
        assert running_elsewhere(home / "others.toml", home / new) is None
        found = running_elsewhere(source, home / new)
        assert found is not None
        assert found.database.resolve() == database.resolve()
        assert f"process {os.getpid()}, which" in found.told
    path_of(database).write_bytes(left)  # as who is killed leaves it
    assert running_elsewhere(source, home / new) is None


def test_what_was_left_by_a_process_that_was_killed_is_nobodys(tmp_path: Path) -> None:
    database = tmp_path / "callboard.db"
    with AppliedFile(database, KEY) as file:
        file.write(AppConfig(), 6.0, ({}, ""))
        left = path_of(database).read_bytes()
    path_of(database).write_bytes(left)
    assert msgspec.json.decode(left)
    assert read_applied(database) is None
