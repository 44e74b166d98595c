"""Proves what the command line says about settings, and what it costs to start it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import cast

import click
import pytest

from connectors.admin.settings import AppliedFile
from connectors.chat.terminal.platform import with_terminal
from connectors.cli import COMMANDS, callboard as the_command, run
from connectors.commands import find_settings, innermost
from connectors.files import receipt_key
from connectors.settings.load import load_app
from connectors.settings.schema import COMMON, explained, table_lines
from runtime import __version__
from runtime.errors import MisuseError, SettingsError, SettingsListError

ROOT = Path(__file__).parents[3]
OFFLINE = "config/offline.toml"
HEAVY = {"trio", "httpx", "msgspec", "pykka", "apsw", "starlette", "prometheus_client"}

Shown = dict[str, dict[str, object]]


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("CALLBOARD_CONFIG", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def callboard(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program as a person would, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "connectors", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_right_settings_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "check", "--config", OFFLINE]) == 0
    expected = f"{OFFLINE}: ok (2 agents, 1 model, 2 connectors)\n"
    assert capsys.readouterr() == (expected, "")


def test_each_mistake_is_one_line_with_its_place_and_a_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "my.toml"
    path.write_text("[limits]\nmax_hop = 3\nturn_timeout = 0\n", encoding="utf-8")
    assert run(["config", "check", "--config", str(path)]) == 1
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert lines[0] == f"{path}:2:1: unknown key 'max_hop' in limits"
    assert lines[1].startswith("  hint: did you mean 'max_hops'? near it: ")
    assert lines[2].startswith(f"{path}:3:16: limits.turn_timeout must be a number")
    assert lines[3] == "  hint: for example: turn_timeout = 300.0"
    assert len(lines) == 4


def test_programs_are_told_of_each_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "my.toml"
    path.write_text("[limits]\nmax_hop = 3\n", encoding="utf-8")
    assert run(["config", "check", "--json", "--config", str(path)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], found["file"]) == (False, str(path))
    (problem,) = found["problems"]
    assert problem["kind"] == "wrong"
    assert problem["text"] == f"{path}:2:1: unknown key 'max_hop' in limits"
    assert run(["config", "check", "--json", "--config", OFFLINE]) == 0
    assert json.loads(capsys.readouterr().out)["problems"] == []


def test_a_mistake_in_a_script_is_found_before_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "offline_script.toml"
    script.write_text('[default]\nreply = "{"', encoding="utf-8")
    path = tmp_path / "callboard.toml"
    path.write_text(
        "default_agent = 'anna'\nconnectors.terminal.kind = 'terminal'\n"
        "models.scripted = { kind = 'scripted', script = 'offline_script.toml' }\n"
        "agents.anna.prompt = 'You are Anna.'",
        encoding="utf-8",
    )
    assert run(["config", "check", "--config", str(path)]) == 1
    assert capsys.readouterr().err.startswith(f"{script}:1:2: default: ")


def test_a_warning_is_told_and_does_not_stop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "my.toml"
    text = (ROOT / OFFLINE).read_text(encoding="utf-8")
    text = text.replace("default_agent =", "# default_agent =")
    text = text.replace('"offline_', f'"{ROOT}/config/offline_')
    text = text.replace('"agents/', f'"{ROOT}/config/agents/')
    path.write_text(text, encoding="utf-8")
    assert run(["config", "check", "--config", str(path)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"{path}: ok")
    assert err.startswith(f"{path}:19:13: warning: connectors.terminal: nobody answers")


def test_show_names_the_origin_of_every_setting(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["config", "show", "--config", OFFLINE]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f'default_agent = "anna"  # {OFFLINE}:8'
    assert "[agents.ben]" in lines
    assert f'tools = ["calculate", "clock"]  # {OFFLINE}:34' in lines
    assert "max_hops = 4  # default" in lines
    assert "# temperature is not set" in lines


def test_show_may_be_of_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "show", "--config", OFFLINE, "agents.anna"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[agents.anna]"
    assert any(line.startswith("tools = [") for line in lines)
    assert {line for line in lines if line.startswith("[")} == {
        line for line in lines if line.startswith("[agents.anna")
    }
    assert run(["config", "show", "--config", OFFLINE, "agnts"]) == 2


def test_a_table_that_there_is_not_is_shown_as_what_it_might_be(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["config", "show", "--config", OFFLINE, "agents.zoe"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (
        lines[0] == "# The settings have no agents.zoe. What it may hold, by default:"
    )
    assert lines[1] == "[agents.zoe]"


def test_what_a_table_may_have_is_shown_though_the_settings_are_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "my.toml"
    path.write_text('[agents.anna]\nmodle = "x"\n', encoding="utf-8")
    config = ["--config", str(path)]
    assert run(["config", "check", *config]) == 1
    hint = capsys.readouterr().err.splitlines()[1].strip()
    near, all_of_them = hint.split("; ")
    assert near.startswith("hint: did you mean 'model'? near it: model, ")
    count, _, see = all_of_them.partition(": callboard ")
    assert run([*see.split(), *config]) == 1
    out, err = capsys.readouterr()
    head, *keys = out.splitlines()
    assert "unknown key 'modle'" in err
    assert head == "[agents.anna]"
    assert f"all {len(keys)}" == count
    assert 'model = "scripted"' in keys
    assert "# persona is not set" in keys


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("connectors", 'kind = "telegram"'),
        ("routes", "[routes]"),
        ("models.x", "base_url = "),
        ("limits", "turn_timeout = "),
    ],
)
def test_tables_that_are_not_there_are_shown_as_they_may_be(
    table: str, line: str
) -> None:
    assert any(each.startswith(line) for each in table_lines(table.split(".")))


def test_what_show_writes_can_be_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["config", "show", "--config", OFFLINE]) == 0
    shown = capsys.readouterr().out.replace('"config/', f'"{ROOT}/config/')
    again = tmp_path / "again.toml"
    again.write_text(shown, encoding="utf-8")
    assert run(["config", "check", "--config", str(again)]) == 0


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_show_never_shows_a_secret(
    more: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-gold-and-round")
    assert run(["config", "show", "--config", "config/openai.toml", *more]) == 0
    out, err = capsys.readouterr()
    assert "gold" not in out + err
    assert "***" in out


def test_show_for_programs_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "show", "--config", OFFLINE, "--json"]) == 0
    found = cast("Shown", json.loads(capsys.readouterr().out))
    assert found["origins"]["agents.anna.persona"] == f"{OFFLINE}:28"
    assert found["origins"]["limits.max_hops"] == "default"
    assert found["settings"]["default_agent"] == "anna"
    assert list(found["files"]) == [OFFLINE]


def test_the_schema_knows_every_table_and_says_what_settings_mean(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["config", "schema"]) == 0
    parts = json.loads(capsys.readouterr().out)["$defs"]
    top = parts["AppConfig"]
    assert {"include", "agents", "models", "limits"} <= set(top["properties"])
    assert top["additionalProperties"] is False
    idle = parts["SessionConfig"]["properties"]["idle_after"]
    assert idle["default"] == 900.0
    assert idle["exclusiveMinimum"] == 0
    assert idle["description"].startswith("Seconds without a message")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("pyproject.toml", "pyproject.toml"), (None, "callboard.toml")],
)
def test_a_named_file_comes_before_the_usual_one(
    name: str | None, expected: str, tmp_path: Path
) -> None:
    (tmp_path / "callboard.toml").write_text("", encoding="utf-8")
    given = None if name is None else Path(name)
    found = find_settings(given, tmp_path, may_fall_back=True)
    assert found.path == Path(expected)
    assert found.note == ""


def test_chat_names_a_database_that_it_may_not_look_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = f"{'x' * 300}/callboard.db"  # as with a folder of somebody else's
    assert run(["chat", "--config", OFFLINE, "--set", f"store.path={path}"]) == 1
    assert "callboard.db cannot be used" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    ["hooks list", "tools list", "prompt anna", "route explain hello --chat http/sam"],
)
def test_without_any_settings_commands_that_only_show_take_the_offline_ones(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(words.split()) == 0


def test_without_any_settings_chat_falls_back_and_says_so(tmp_path: Path) -> None:
    found = find_settings(None, tmp_path, may_fall_back=True)
    assert found.path == ROOT / OFFLINE
    assert found.note.startswith("No callboard.toml here; using the offline settings")
    with pytest.raises(click.UsageError, match="callboard chat --config"):
        find_settings(None, tmp_path)


@pytest.mark.parametrize(
    ("named", "hint"),
    [
        (
            "conpany.toml",
            "did you mean 'company.toml'? known: company.toml, other.toml",
        ),
        ("empty/company.toml", "`callboard init` makes one"),
        ("gone/company.toml", "there is no folder gone that can be read"),
    ],
)
def test_a_file_that_is_not_there_has_a_hint(
    named: str,
    hint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("company.toml", "other.toml"):
        (tmp_path / name).touch()
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CALLBOARD_CONFIG", named)  # the environment may name it
    assert run(["config", "check"]) == 1
    assert capsys.readouterr().err == (
        f"{named}: cannot be read: No such file or directory\n  hint: {hint}\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [["chta"], ["config", "chek"], ["config", "check", "--nope"], ["config", "check"]],
)
def test_a_wrong_command_line_is_code_2(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == 2


@pytest.mark.parametrize("columns", [60, 80])
def test_help_of_a_group_says_all_of_what_each_command_does(columns: int) -> None:
    context = click.Context(the_command, info_name="callboard", terminal_width=columns)
    for name in the_command.list_commands(context):
        command = the_command.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            below = click.Context(command, context, name)
            said = command.get_help(below)
            assert "..." not in said.partition("Commands:")[2]
            assert max(map(len, said.splitlines())) <= columns


def test_help_lists_all_commands_and_the_exit_codes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in COMMANDS)
    assert "Exit codes: 0 all is well" in out


def test_the_version_is_told_without_loading_anything_heavy() -> None:
    done = callboard("--version", PYTHONPROFILEIMPORTTIME="1")
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert done.stdout == f"callboard {__version__}\n"
    assert done.returncode == 0
    assert "connectors.cli" in loaded
    assert not HEAVY & loaded


def test_a_reader_that_goes_away_is_no_drama() -> None:
    shell = f"{sys.executable} -m connectors config schema | head -n 1"
    done = subprocess.run(
        ["/bin/sh", "-c", shell], cwd=ROOT, capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_mistake_of_the_program_is_one_line_and_code_70() -> None:
    code = (
        "import sys, connectors.cli as c; c.COMMANDS['x'] = ('nowhere', ''); c.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "x"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 70
    assert done.stderr.startswith(
        "callboard: internal error: ModuleNotFoundError: No module named 'nowhere'\n"
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (
            SettingsError("one", file="a", line=1, hint="do"),
            1,
            "a:1: one\n  hint: do\n",
        ),
        (MisuseError("not so"), 1, "callboard: not so\n"),
        (
            OSError(28, "No space left on device"),
            1,
            "callboard: No space left on device; make room on that disk\n",
        ),
        (
            OSError(13, "Permission denied", "/x/y"),
            1,
            "callboard: /x/y: Permission denied; change its owner or permissions,",
        ),
        (
            OSError(30, "Read-only file system", "/x/y"),
            1,
            "callboard: /x/y: Read-only file system; name a place that can be ",
        ),
        (
            OSError(5, "Input/output error", "/x"),
            1,
            "callboard: /x: Input/output error\n",
        ),
        (OSError("odd"), 1, "callboard: odd"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_a_command_raises_becomes_a_line_and_a_code(
    error: BaseException,
    code: int,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    @click.command()
    def failing() -> None:
        raise error

    module = ModuleType("failing_command")
    monkeypatch.setattr(module, "command", failing, raising=False)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(COMMANDS, "fail", (module.__name__, ""))
    assert run(["fail"]) == code
    assert capsys.readouterr().err.strip().startswith(told.strip())


def test_an_interrupted_start_is_no_mistake_of_the_program() -> None:
    code = (
        "import connectors.cli as c; "
        "e = BaseExceptionGroup('', [KeyboardInterrupt()]); "
        "c.tell_mistake(type(e), e, None)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, b"")


def test_of_a_group_of_errors_the_first_is_told() -> None:
    first = ValueError("one")
    inner = ExceptionGroup("inner", [first, ValueError("two")])
    assert innermost(ExceptionGroup("outer", [inner])) is first


def test_several_settings_errors_read_as_lines() -> None:
    each = (
        SettingsError("one", file="a", line=1, column=2, hint="do"),
        SettingsError("two", file="a", line=3),
    )
    error = SettingsListError(each)
    assert str(error) == "a:1:2: one\na:3: two"
    assert (error.problems, error.hint, error.line) == (each, "do", 1)
    assert each[0].problems == (each[0],)


KEYED = """
default_agent = "anna"
[models.main]
kind = "openai"
model = "m"
api_key = { env = "KEY_OF_THE_SERVICE" }
[connectors.terminal]
kind = "terminal"
[connectors.http]
kind = "http"
api_key = { file = "not/there" }
[connectors.slack.accounts.anna]
bot_token = { env = "KEY_OF_THE_SERVICE" }
app_token = { env = "KEY_OF_THE_SERVICE" }
[connectors.slack]
kind = "slack"
[webhooks.in.push]
agents = ["anna"]
chat = "slack/C1"
task = "Look."
secret = { env = "KEY_OF_THE_SERVICE" }
[agents.anna]
model = "main"
prompt = "You are Anna."
"""


@pytest.fixture
def keyed(tmp_path: Path) -> str:
    path = tmp_path / "callboard.toml"
    path.write_text(KEYED, encoding="utf-8")
    return str(path)


def test_who_only_looks_needs_no_secret(
    keyed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["config", "check", "--config", keyed]) == 0
    out, err = capsys.readouterr()
    assert ": ok (1 agent" in out
    needed = "needed by serve and chat: models.main.api_key: the environment variable"
    assert needed in err
    assert "not/there cannot be read" in err
    assert run(["config", "show", "--config", keyed]) == 0
    shown = capsys.readouterr().out
    assert shown.count('"(not set here)"') == 5
    for command in (["agents", "list"], ["tools", "list"], ["hooks", "list"]):
        run([*command, "--config", keyed])
        assert "is not set" not in capsys.readouterr().err


def test_only_what_is_set_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ["config", "show", "--changed", "--config", OFFLINE]
    assert run(shown) == 0
    out = capsys.readouterr().out
    assert out.startswith(f'default_agent = "anna"  # {OFFLINE}:')
    assert "# default" not in out
    assert "turn_timeout" not in out
    assert run([*shown, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["settings"].keys() == found["origins"].keys()
    assert found["settings"]["connectors.http.port"] == "8080"
    assert run([*shown, "limits"]) == 0
    assert capsys.readouterr().out == "# nothing is set here\n"
    assert run([*shown, "limit"]) == 2


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (
            "limits.turn_timeout",
            [
                "Time limit in seconds",
                "takes:    number above 0 and at most 86400\n",
                "default:  300.0\n",
                "here:     300.0  (default)",
                "changes:  within three seconds",
                "to set:   [limits] turn_timeout = …, or --set limits.turn_timeout=…",
            ],
        ),
        ("connectors.http.port", ["(kind = http)", "8080  (config/offline.toml:"]),
        ("log.level", ['"debug" or "error" or "info" or "warning"']),
        (
            "models.other.api_key",
            ["(kind = openai)", "(kind = google)", '{ env = "NAM'],
        ),
        ("budgets.hard_usd", ["to set:   [[budgets]] hard_usd = …\n"]),
        ("store.path", ["with the next start: all that is under way"]),
        ("agents.anna.tools", ["here:     []  (default)", "list of text"]),
        ("store", ["keys:     kind, path, dsn, synchronous\n"]),
    ],
)
def test_a_setting_is_explained(
    key: str, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["config", "explain", key, "--config", OFFLINE]) == 0
    out = capsys.readouterr().out
    assert out.startswith(key)
    assert [each for each in said if each not in out] == []


def test_an_explanation_needs_no_settings_and_knows_what_is_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["config", "explain", "connectors.any.port"]) == 0
    out = capsys.readouterr().out
    assert "default:  8081" in out
    assert "here:" not in out
    assert run(["config", "explain", "limits.turn_timeuot"]) == 2
    assert "Did you mean limits.turn_timeout" in capsys.readouterr().err


def test_since_when_is_true_of_lists_and_not_told_of_what_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, database = tmp_path / "callboard.toml", tmp_path / "any.db"
    text = f'include = ["{ROOT / OFFLINE}"]\n[store]\npath = "{database}"\n'
    text += '[[budgets]]\nscope = "user"\nhard_tokens = 7\n'
    path.write_text(text, encoding="utf-8")
    with AppliedFile(database, b"") as file:
        file.write(with_terminal(load_app(path, {}).value), 7_200.0, ({}, ""))
        found: list[object] = []
        for key in ("budgets.hard_tokens", "agents.nobody.model"):
            assert run(["config", "explain", key, "--config", str(path), "--json"]) == 0
            (facts,) = json.loads(capsys.readouterr().out)
            found.append((facts["since"], facts["in_use"]))
        assert found == [(7_200.0, True), (None, None)]
        path.write_text(text.replace("= 7", "= 8"), encoding="utf-8")
        asked = ["config", "explain", "budgets.hard_tokens", "--config", str(path)]
        assert run(asked) == 0
        assert "not in use: process" in capsys.readouterr().out


def test_a_setting_is_explained_with_since_when_it_is_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, database = tmp_path / "callboard.toml", tmp_path / "any.db"
    text = f'include = ["{ROOT / OFFLINE}"]\n[store]\npath = "{database}"\n'
    text += "[limits]\nmax_open = 7\n"
    path.write_text(text, encoding="utf-8")
    os.utime(path, (3_600, 3_600))
    asked = ["config", "explain", "limits.max_open", "--config", str(path)]
    assert run(asked) == 0
    written = "since:    1970-01-01 01:00:00 UTC, when callboard.toml was written"
    assert written in capsys.readouterr().out
    with AppliedFile(database, b"") as file:
        file.write(with_terminal(load_app(path, {}).value), 7_200.0, ({}, ""))
        assert run([*asked, "--json"]) == 0
        (facts,) = json.loads(capsys.readouterr().out)
        assert (facts["since"], facts["in_use"]) == (7_200.0, True)
        assert run(asked) == 0
        told = f"since:    1970-01-01 02:00:00 UTC, in process {os.getpid()}"
        assert told in capsys.readouterr().out
        path.write_text(text.replace("= 7", "= 8"), encoding="utf-8")
        assert run(asked) == 0
        told = f"not in use: process {os.getpid()} goes by 7; see callboard config diff"
        assert told in capsys.readouterr().out
        assert run([*asked, "--json"]) == 0
        (facts,) = json.loads(capsys.readouterr().out)
        assert (facts["value"], facts["since"], facts["in_use"]) == ("8", None, False)


def diffed(path: Path, capsys: pytest.CaptureFixture[str], code: int) -> list[str]:
    """Compare saved settings with those in use; return what the command prints."""
    capsys.readouterr()
    assert run(["config", "diff", "--config", str(path)]) == code
    head, *told = capsys.readouterr().out.splitlines()
    assert head == f"process {os.getpid()}, since 1970-01-01 02:00:00 UTC; {path}"
    return told


def test_what_is_saved_is_compared_with_what_is_in_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, database = tmp_path / "callboard.toml", tmp_path / "any.db"
    text = f'include = ["{ROOT / OFFLINE}"]\n[store]\npath = "{database}"\n'
    path.write_text(f"{text}[limits]\nmax_open = 7\n", encoding="utf-8")
    asked = ["config", "diff", "--config", str(path)]
    assert run(asked) == 2
    assert f"nobody runs with the database {database}" in capsys.readouterr().err
    in_use = with_terminal(load_app(path, os.environ).value)
    with AppliedFile(database, receipt_key.load(database)) as file:
        file.write(in_use, 7_200.0, ({}, ""))
        assert diffed(path, capsys, 0) == ["what is saved is in use"]
        path.write_text(f"{text}[limits]\nmax_open = 8\n", encoding="utf-8")
        lines = ["- limits.max_open = 7", "+ limits.max_open = 8"]
        assert diffed(path, capsys, 1) == lines
        file.write(in_use, 7_200.0, ({"limits.max_open": "it is busy"}, "line 3"))
        waits = "limits.max_open waits for a restart: it is busy"
        mistake = "what was saved last was not taken over: line 3"
        assert diffed(path, capsys, 1) == [*lines, waits, mistake]
        assert run([*asked, "--json"]) == 1
        assert json.loads(capsys.readouterr().out) == {
            "process": os.getpid(),
            "since": 7_200.0,
            "differences": lines,
            "waiting": {"limits.max_open": "it is busy"},
            "mistake": "line 3",
            "not_compared": [],
        }


def test_secrets_that_are_not_set_here_are_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, database = tmp_path / "callboard.toml", tmp_path / "any.db"
    text = f'include = ["{ROOT / OFFLINE}"]\n[store]\npath = "{database}"\n'
    text += '[admin]\napi_key = { env = "NOBODY_SETS_THIS" }\n'
    path.write_text(text, encoding="utf-8")
    app = load_app(path, os.environ | {"NOBODY_SETS_THIS": "a long key"}).value
    with AppliedFile(database, receipt_key.load(database)) as file:
        file.write(with_terminal(app), 7_200.0, ({}, ""))
        assert run(["config", "diff", "--config", str(path)]) == 0
    told = capsys.readouterr()
    assert told.out.endswith("\nwhat is saved is in use\n")
    assert "not compared, for they are not set here: admin.api_key\n" in told.err


def test_every_setting_can_be_explained() -> None:
    names = (ROOT / "tests/house/stored_names.txt").read_text(encoding="utf-8")
    keys = [
        x.removeprefix("setting ") for x in names.splitlines() if x[:8] == "setting "
    ]
    assert len(keys) > 500
    mute = [
        key
        for key in keys
        if not key.endswith("*") and not explained(key.replace("*", "any").split("."))
    ]
    assert mute == []


def test_who_runs_a_company_needs_each_secret(
    keyed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("serve", "chat"):
        assert run([command, "--config", keyed]) == 1
        told = capsys.readouterr().err
        assert "models.main.api_key: the environment variable" in told
        assert "connectors.http.api_key: the file" in told


def test_a_secret_that_is_needed_after_all_is_named_where_it_is_missing(
    keyed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["tree", "--config", keyed]) == 1
    told = capsys.readouterr().err
    assert f"{keyed}:11:" in told
    assert "connectors.http.api_key: the file" in told


def test_a_secret_that_is_none_is_wrong_for_everybody(
    keyed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_THE_SERVICE", "changeme")
    assert run(["config", "check", "--config", keyed]) == 1
    assert "holds a placeholder" in capsys.readouterr().err


def test_the_doctor_goes_on_without_a_secret_and_asks_nobody_with_it(
    keyed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["doctor", "--config", keyed])
    out = capsys.readouterr().out
    assert "models.main.api_key: the environment variable" in out
    assert "models.main: not asked" in out
    assert "connectors.slack: not asked" in out or "connectors.slack.accounts" in out
    assert "database" in out


def lines_shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert run(["config", "show", "--config", OFFLINE, *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def test_the_command_line_counts_more_than_the_environment_and_the_file_least(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLBOARD_LOG__LEVEL", "debug")
    monkeypatch.setenv("CALLBOARD_AGENTS__BEN__MAX_HISTORY", "7")
    monkeypatch.setenv("CALLBOARD_ONLY_ONE", "is none")
    lines = lines_shown(capsys)
    assert 'level = "debug"  # CALLBOARD_LOG__LEVEL' in lines
    assert "max_history = 7  # CALLBOARD_AGENTS__BEN__MAX_HISTORY" in lines
    assert f'tools = ["calculate", "clock"]  # {OFFLINE}:34' in lines
    more = ("--set", "log.level=error", "--set", "default_agent = ben")
    lines = lines_shown(
        capsys, *more, "--set", "agent_defaults.context.injection=refuse"
    )
    assert 'level = "error"  # --set log.level' in lines
    assert 'default_agent = "ben"  # --set default_agent' in lines
    refuse = 'injection = "refuse"  # --set agent_defaults.context.injection'
    assert lines.count(refuse) == 3


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("CALLBOARD_OWNERS", "set owners in this file, or by --set 'owners=…'"),
        (
            "CALLBOARD_LOG_LEVEL",
            "two underscores stand for a dot: CALLBOARD_LOG__LEVEL",
        ),
        ("CALLBOARD_MODELS_X_MODEL", "CALLBOARD_MODELS__NAME__KEY"),
        ("CALLBOARD_LOG_NOTHING", ""),
        ("CALLBOARD_API_KEY", ""),
    ],
)
def test_a_variable_that_only_looks_like_a_setting_is_warned_of(
    name: str,
    hint: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(name, "x")
    assert run(["config", "check", "--config", OFFLINE]) == 0
    told = capsys.readouterr().err
    assert (f"warning: the variable {name} sets nothing" in told) == bool(hint)
    assert hint in told


def test_a_variable_that_a_secret_is_taken_from_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "callboard.toml"
    key = '[admin]\napi_key = { env = "CALLBOARD_ADMIN_API_KEY" }\n'
    path.write_text(Path(OFFLINE).read_text("utf-8") + key, "utf-8")
    monkeypatch.setenv("CALLBOARD_ADMIN_API_KEY", "k" * 32)
    run(["config", "check", "--config", str(path)])
    assert "sets nothing" not in capsys.readouterr().err


def test_what_is_given_beside_the_file_may_be_any_toml_or_a_plain_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tools = ("--set", 'agents.ben.tools=["clock"]')
    prompt = ("--set", "agents.ben.prompt=Be brief, please = so")
    lines = lines_shown(capsys, *tools, *prompt)
    assert 'tools = ["clock"]  # --set agents.ben.tools' in lines
    assert 'prompt = "Be brief, please = so"  # --set agents.ben.prompt' in lines


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("log.levle=debug", "--set log.levle: unknown key 'levle' in log"),
        ("log.level=loud", "--set log.level: log.level must be"),
        ("debug", "--set debug: this names no setting"),
        ("a b=1", "--set a b: this names no setting"),
        ("models.scripted.script=1", "--set models.scripted.script: "),
    ],
)
def test_a_mistake_beside_the_file_is_told_by_where_it_was_given(
    given: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["config", "check", "--config", OFFLINE, "--set", given]) == 1
    assert capsys.readouterr().err.startswith(complaint)


def test_a_secret_beside_the_file_is_named_by_its_source_and_never_repeated(
    keyed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = "sk-this-is-a-real-secret"
    given = ("--set", f"models.main.api_key={mine}")
    assert run(["config", "check", "--config", keyed, *given]) == 1
    told = capsys.readouterr().err
    assert "never hold the secret itself" in told
    assert mine not in told
    monkeypatch.setenv("MY_OWN", mine)
    source = ("--set", "connectors.http.api_key.env=MY_OWN")
    assert run(["config", "show", "--config", keyed, *source]) == 0
    out = capsys.readouterr().out
    assert 'api_key = "***"  # --set connectors.http.api_key' in out
    assert mine not in out


def test_a_variable_that_holds_a_secret_of_the_settings_is_no_setting(
    keyed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLBOARD_MAIN__KEY", "sk-this-is-a-real-secret")
    source = ("--set", "models.main.api_key.env=CALLBOARD_MAIN__KEY")
    assert run(["config", "show", "--config", keyed, *source]) == 0
    assert "sk-this" not in capsys.readouterr().out
    assert run(["config", "show", "--config", keyed]) == 1
    told = capsys.readouterr().err
    assert told.startswith("CALLBOARD_MAIN__KEY: unknown key 'main'")
    assert "sk-this" not in told


def test_the_database_may_be_given_beside_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    offline = str(ROOT / OFFLINE)
    given = ("--set", "store.path=mine.db")
    assert run(["queue", "list", "--config", offline, *given]) == 1
    told = f"there is no database {tmp_path}/mine.db yet: start `callboard serve`, or"
    assert told in capsys.readouterr().err


def test_without_a_key_the_common_settings_are_explained(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["config", "explain", "--no-header"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        key.replace(".x", ".NAME") for key in COMMON
    ]
    assert run(["config", "explain", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["key"] == COMMON[0]
