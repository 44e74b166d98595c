"""Proves what `callboard audit`, `usage` and `logs` tell of the past."""

from __future__ import annotations

import io
import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from actors.messages.inbound import Usage
from actors.messages.usage import Spent
from actors.models.budget import Spender
from actors.models.spending import CallRecord, PaidCall
from connectors.cli import run
from connectors.commands import logs
from connectors.commands.common.output import seconds_of
from runtime.clock import SystemClock
from runtime.store.rows import Commit
from runtime.telemetry.log_file import Follower
from tests.fakes.company.company import EPOCH
from tests.support.desk import (
    FAILED,
    HELLO,
    HELP,
    SECRET,
    SUM,
    commit_to,
    write_database,
)
from tests.support.store.rows import NOW

Output = pytest.CaptureFixture[str]


class Still:
    def monotonic(self) -> float:
        return 0.0

    def wall(self) -> float:
        return EPOCH


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_database(tmp_path / "callboard.db")


def audited(path: Path, capsys: Output, *options: str) -> list[dict[str, Any]]:
    assert run(["audit", "--db", str(path), "--json", *options]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_exchanges_and_refused_attempts_are_told_newest_first(
    path: Path, capsys: Output
) -> None:
    rows = audited(path, capsys)
    assert [row["id"] for row in rows] == [
        "01REFUSED",
        f"{FAILED}#3",
        HELP,
        SUM,
        HELLO,
    ]
    assert (rows[0]["status"], rows[0]["reason"]) == ("unauthorised", "bad_key")
    assert rows[3]["input"] == "what is 12 * 7"
    assert rows[3]["at"] > rows[4]["at"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--chat", "kitchen"], 4),
        (["--chat", "cli/kitchen"], 4),
        (["--chat", "http/kitchen"], 0),
        (["--sender", "Sam"], 4),
        (["--sender", "10.0.0.9"], 1),
        (["--sender", "http/10.0.0.9"], 1),
        (["--sender", "cli/10.0.0.9"], 0),
        (["--since", "2h", "--limit", "2"], 2),
        (["--since", "1s"], 0),
    ],
)
def test_what_is_told_may_be_chosen(
    path: Path, options: list[str], expected: int, capsys: Output
) -> None:
    assert len(audited(path, capsys, *options)) == expected


def test_people_read_the_audit_as_a_table(path: Path, capsys: Output) -> None:
    assert run(["audit", "--db", str(path)]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split()[:3] == ["TIME", "CHAT", "SENDER"]
    assert "unauthorised:bad_key" in lines[0]
    assert "dead:model" in lines[1]
    assert "Hello Sam. What can I do?" in lines[4]
    assert SECRET not in "".join(lines)


def test_nothing_on_record_says_so(path: Path, capsys: Output) -> None:
    assert run(["audit", "--db", str(path), "--chat", "nowhere"]) == 0
    assert capsys.readouterr().out == "Nothing is on record that fits.\n"


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("agent", ["anna"]),
        ("model", ["big/big-1"]),
        ("account", ["big"]),
        ("sender", ["cli/sam"]),
    ],
)
def test_usage_is_summed_up(
    path: Path, by: str, names: list[str], capsys: Output
) -> None:
    assert run(["usage", "--db", str(path), "--by", by, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in found] == names
    assert (found[0]["runs"], found[0]["input_tokens"]) == (4, 50)
    assert (found[0]["cost"], found[0]["seconds"]) == (1.0, 2.0)


def settings_with(folder: Path, path: Path, more: str) -> list[str]:
    (folder / "rules.toml").write_text("", encoding="utf-8")
    config = folder / "callboard.toml"
    config.write_text(
        f'[store]\npath = "{path}"\n[models.scripted]\nkind = "scripted"\n'
        'script = "rules.toml"\n[connectors.http]\nkind = "http"\n'
        f'[agents.anna]\nprompt = "x"\n{more}',
        encoding="utf-8",
    )
    return ["usage", "--budgets", "--config", str(config)]


def test_what_is_left_of_each_budget_is_told(path: Path, capsys: Output) -> None:
    spent = Spent(
        provider="big", model="big-1", account="big", usage=Usage(30, 10), cost=0.25
    )
    body = CallRecord(who=Spender("anna", "cli/mia"), spent=spent)
    commit_to(path, PaidCall("call", SystemClock().wall(), body).commit())
    budgets = (
        '[[budgets]]\nscope = "user"\nhard_usd = 1\n'
        '[[budgets]]\nscope = "all"\nsoft_tokens = 1\nperiod = "month"\n'
    )
    words = settings_with(path.parent, path, budgets)
    assert run([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    told = {each["who"]: (each["spent_usd"], each["left_usd"]) for each in found}
    assert told["cli/mia"] == (0.25, 0.75)
    assert told["all"][1] is None
    assert run(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:5] == ["user", "cli/mia", "day", "0.2500", "0.7500"]


def test_budgets_that_there_are_not_are_told_of(path: Path, capsys: Output) -> None:
    assert run(settings_with(path.parent, path, "")) == 0
    assert "name no budget" in capsys.readouterr().out
    assert run(["usage", "--budgets", "--db", str(path)]) == 2
    assert "give --config" in capsys.readouterr().err


def test_people_read_usage_as_a_table_with_its_total(
    path: Path, capsys: Output
) -> None:
    assert run(["usage", "--db", str(path), "--by", "day"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[0] == "DAY"
    day = datetime.fromisoformat(lines[1].split()[0])
    assert day.isoformat().endswith("T00:00:00")
    assert lines[-1].split() == ["all", "4", "50", "8", "1.0000", "2.0"]


def test_usage_of_nothing_says_so(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "new.db"
    commit_to(path, Commit(at=NOW))
    assert run(["usage", "--db", str(path)]) == 0
    assert capsys.readouterr().out == "No model has been asked in that time.\n"


@pytest.mark.parametrize(
    ("text", "ago"),
    [("90s", 90.0), ("30m", 1800.0), ("2h", 7200.0), ("7d", 604_800.0)],
)
def test_a_time_may_be_so_long_ago(text: str, ago: float) -> None:
    assert seconds_of(text, Still()) == EPOCH - ago


def test_a_time_may_be_a_date_local_unless_it_says_otherwise() -> None:
    local = datetime.fromisoformat("2026-11-21").astimezone().timestamp()
    assert seconds_of("2026-11-21", Still()) == local
    assert seconds_of("1970-01-01T01:00+01:00", Still()) == 0.0


@pytest.mark.parametrize("text", ["tomorrow", "5", "-1h", "9999999h", "0001-01-01"])
def test_no_time_at_all_is_a_wrong_command_line(
    path: Path, text: str, capsys: Output
) -> None:
    assert run(["audit", "--db", str(path), f"--since={text}"]) == 2
    assert f"{text!r} is no time; write 2026-11-21" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["audit", "usage", "queue list"])
def test_no_key_is_needed_to_look_into_the_past(
    command: str, tmp_path: Path, path: Path, capsys: Output
) -> None:
    settings = tmp_path / "c.toml"
    settings.write_text(
        f'[store]\npath = "{path}"\n[models.a]\nkind = "openai"\nmodel = "m"\n'
        'api_key = { env = "NOT_SET_ANYWHERE" }\n'
    )
    assert run([*command.split(), "--config", str(settings)]) == 0
    assert capsys.readouterr().out
    settings.write_text("[store]\npth = 1\n")
    assert run([*command.split(), "--config", str(settings)]) != 0
    assert "unknown key 'pth'" in capsys.readouterr().err


LINES = """\
2026-11-28T08:00:00.000Z INFO callboard.serve started release=1
2026-11-28T08:00:01.000Z DEBUG callboard.turn "a \x1b turn" agent=anna connector=cli
<4>2026-11-28T08:00:02.000Z WARNING callboard.chat slow channel=cli correlation_id=c1
{"time":"t","level":"error","part":"callboard.chat","event":"lost","agent":"anna"}
Traceback of another program

"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a file of a log in the current folder, and what was in it before."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.log.1").write_text("an older line\n")
    (tmp_path / "my.log").write_text(LINES)
    return tmp_path / "my.log"


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ([], [-1, 0, 1, 2, 3, 4]),
        (["-n", "2"], [3, 4]),
        (["--agent", "anna"], [1, 3]),
        (["--connector", "cli"], [1, 2]),
        (["--connector", "cli", "--agent", "anna"], [1]),
        (["--id", "c1"], [2]),
        (["--level", "debug"], [0, 1, 2, 3]),
        (["--level", "warning"], [2, 3]),
        (["--level", "error", "-n", "1"], [3]),
        (["--agent", "ben"], []),
        (["-n", "0"], []),
    ],
)
def test_those_lines_of_a_log_are_shown_that_are_asked_for(
    log: Path,
    capsys: Output,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    shown: list[int],
) -> None:
    lines = [*LINES.replace("\x1b", "␛").splitlines()[:5], "an older line"]
    wanted = [lines[each] for each in shown]
    assert run(["logs", log.name, *options]) == int(not shown)
    told = capsys.readouterr()
    assert told.out.splitlines() == wanted
    assert told.err == ("" if shown else "callboard: no line of my.log fits\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO(LINES))
    wanted = [each for each in wanted if each != lines[-1]]
    assert run(["logs", "-", *options]) == int(not wanted)
    told = capsys.readouterr()
    assert (told.out.splitlines(), told.err) == (wanted, "")


def test_what_comes_to_a_log_is_shown_as_it_comes(
    log: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(LINES))
    assert run(["logs", "-", "-f", "-n", "1", "--agent", "anna", "--json"]) == 0
    shown = [json.loads(each) for each in capsys.readouterr().out.splitlines()]
    assert [each["event"] for each in shown] == ['"a \x1b turn"', "lost"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("no line of ours\n"))
    assert run(["logs", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"event": "no line of ours"}
    monkeypatch.setattr(logs, "LOOK_EVERY", 0.0)
    with Follower(log) as follower:
        coming = logs.later(follower)
        with log.open("a") as file:
            file.write("one\ntwo\nhalf")
        assert [next(coming), next(coming)] == ["one", "two"]
        with log.open("a") as file:
            file.write(" a line\n")
        assert next(coming) == "half a line"


def test_where_the_log_is_the_settings_say_or_who_keeps_it(
    log: Path, capsys: Output
) -> None:
    script = '[default]\nreply = "so"\n'
    log.with_name("script.toml").write_text(script, encoding="utf-8")
    settings = log.with_name("callboard.toml")
    words = 'models.scripted = { kind = "scripted", script = "script.toml" }\n'
    words += 'agents.anna.prompt = "I am Anna."\nconnectors.cli.kind = "terminal"\n'
    settings.write_text(f"{words}log.file = 'my.log'\n")
    assert run(["logs", "--id", "c1"]) == 0
    assert "WARNING callboard.chat slow" in capsys.readouterr().out
    settings.write_text(words)
    assert run(["logs"]) == 1
    told = capsys.readouterr().err
    assert "journalctl -u callboard -o cat | callboard logs -" in told
    assert run(["logs", "none.log"]) == 1
    assert "none.log" in capsys.readouterr().err
