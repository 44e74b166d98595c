"""Proves what `callboard doctor` says of a machine, and that it claims nothing."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from connectors.cli import run
from connectors.commands.doctor.main import check_extras, check_reach, in_force
from connectors.config.app import (
    AdminConfig,
    AppConfig,
    ConnectorConfig,
    HttpConfig,
    NodesConfig,
)
from connectors.sandbox.plan import Standing
from connectors.sandbox.runner import FEATURES

OFFLINE = Path(__file__).parents[4] / "config" / "offline.toml"


def settings(folder: Path, more: str = "", path: str = "state/callboard.db") -> str:
    file = folder / "callboard.toml"
    text = f'include = ["{OFFLINE}"]\n{more}\n[store]\npath = "{folder / path}"\n'
    file.write_text(text, encoding="utf-8")
    return str(file)


def doctor(
    capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, list[str]]:
    code = run(["doctor", "--all", *arguments])
    return code, capsys.readouterr().out.splitlines()


def test_all_is_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = doctor(capsys, "--config", settings(tmp_path))
    assert code == 0
    assert any(line.startswith("ok       sqlite     3.") for line in lines)
    assert any("state/callboard.db is not there yet" in line for line in lines)
    assert any(line.startswith("ok       settings") for line in lines)
    assert any(line.split()[1] == "sandbox" for line in lines)
    assert not (tmp_path / "state").exists()


def test_where_no_settings_are_it_says_whose_it_looks_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["doctor", "--offline"]) == 0
    told = capsys.readouterr().err
    assert told == f"No callboard.toml here; using the offline settings in {OFFLINE}.\n"


def test_what_is_fine_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = '[sandbox]\nmode = "none"'
    code = run(["doctor", "--config", settings(tmp_path, more)])
    *above, last = capsys.readouterr().out.splitlines()
    assert code == 0
    assert last.startswith("ok       settings, ")
    assert last.endswith(": callboard doctor --all shows each")
    assert any("none, as set" in line for line in above)
    assert not [line for line in above if line.startswith("ok")]


def test_wrong_settings_are_said_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = settings(tmp_path, '[sandbox]\nmode = "docker"')
    code, lines = doctor(capsys, "--config", file)
    assert code == 1
    assert lines[0].startswith("wrong    settings")
    assert "docker" in lines[0]


def test_a_database_that_cannot_be_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    code, lines = doctor(capsys, "--config", settings(tmp_path, path="file/x/y.db"))
    assert code == 1
    at = next(n for n, line in enumerate(lines) if line.startswith("wrong"))
    assert "file is no folder that the user" in lines[at]
    assert lines[at + 1].strip().startswith("to do: ")


def test_no_sandbox_is_a_warning_unless_programs_are_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = doctor(
        capsys, "--config", settings(tmp_path, '[sandbox]\nmode = "none"')
    )
    assert code == 0
    assert "warning  sandbox    none, as set (no agent runs programs)" in lines


def test_a_workspace_around_the_database_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = (
        f'[workspace]\npath = "{tmp_path}"\n[agents.kit]\nprompt = "Kit."\n'
        'tools = ["run_shell"]\n'
    )
    code, lines = doctor(capsys, "--config", settings(tmp_path, more))
    assert code == 1
    assert any("holds the database" in line for line in lines)
    assert any("a folder of their own" in line for line in lines)


def test_programs_get_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["doctor", "--config", settings(tmp_path), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert code == 0
    assert {each["about"] for each in found} >= {"settings", "sqlite", "sandbox"}


def test_what_is_not_in_force_is_never_called_ok() -> None:
    features = dict.fromkeys(FEATURES, True) | {"signals": False}
    missing = ("signals is not in force; install bubblewrap",)
    standing = Standing(kind="landlock", abi=5, features=features, missing=missing)
    found = list(in_force(standing, "needed by kit"))
    assert not [each for each in found if each.state == "ok" and "signals" in each.text]
    assert [each.text for each in found if each.state == "warning"] == list(missing)


def test_every_extra_is_looked_at() -> None:
    assert all(each.state == "ok" for each in check_extras())


@pytest.mark.parametrize(
    ("script", "expected", "wanted"),
    [
        ("echo 2.1 of it", 0, "starts in the sandbox, and says '2.1 of it'"),
        ("echo no library >&2; exit 3", 1, "ended with code 3 in the sandbox: no lib"),
    ],
)
def test_a_model_that_is_a_program_is_started_once(
    script: str,
    expected: int,
    wanted: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    program = tmp_path / "bin" / "model"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    more = f'[models.program]\nkind = "cli"\ncommand = ["{program}"]\n'
    more += f'readable = ["{program.parent}"]\n'
    code, lines = doctor(capsys, "--config", settings(tmp_path, more))
    assert code == expected
    assert any(wanted in line for line in lines), lines


def test_a_model_whose_program_is_missing_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = '[models.program]\nkind = "cli"\ncommand = ["no-such-program"]\n'
    code, lines = doctor(capsys, "--config", settings(tmp_path, more))
    assert code == 1
    assert any("there is no program 'no-such-program'" in line for line in lines)


HTTP = HttpConfig(host="10.0.0.5")
ADMIN = AdminConfig(host="0.0.0.0")  # noqa: S104  nothing listens


@pytest.mark.parametrize(
    ("address", "admin", "connectors", "is_told"),
    [
        ("10.0.0.5", AdminConfig(), {}, True),
        ("10.0.0.5", AdminConfig(), {"http": HttpConfig()}, True),
        ("10.0.0.5", AdminConfig(), {"http": HTTP}, False),
        ("10.0.0.5", ADMIN, {}, False),
        ("10.0.0.5", AdminConfig(is_on=False, host="0.0.0.0"), {}, True),  # noqa: S104
        ("", ADMIN, {}, True),
        ("", AdminConfig(host="10.0.0.5"), {}, False),
        ("127.0.0.1", AdminConfig(), {}, False),
    ],
)
def test_a_node_that_others_cannot_ask_is_told_how(
    address: str,
    admin: AdminConfig,
    connectors: dict[str, ConnectorConfig],
    *,
    is_told: bool,
) -> None:
    nodes = NodesConfig(name="a", address=address)
    app = AppConfig(nodes=nodes, admin=admin, connectors=connectors)
    found = list(check_reach(app))
    assert [each.state for each in found] == ["warning"] * is_told
    assert not list(check_reach(msgspec.structs.replace(app, nodes=NodesConfig())))
