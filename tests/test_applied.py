"""Proves what is noted of the settings in use, and that no secret is among it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from actors.config import AgentConfig, LimitsConfig
from connectors.applied import (
    AppliedFile,
    differences,
    flat,
    path_of,
    read_applied,
)
from connectors.config import AppConfig, HttpConfig
from runtime.secret import Secret

if TYPE_CHECKING:
    from pathlib import Path

KEY = b"k" * 32

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
        assert read_applied(database) == found
    assert read_applied(database) is None


def test_what_was_left_by_a_process_that_was_killed_is_nobodys(tmp_path: Path) -> None:
    database = tmp_path / "callboard.db"
    with AppliedFile(database, KEY) as file:
        file.write(AppConfig(), 6.0, ({}, ""))
        left = path_of(database).read_bytes()
    path_of(database).write_bytes(left)
    assert msgspec.json.decode(left)
    assert read_applied(database) is None
