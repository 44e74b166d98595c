"""Proves what `callboard hooks` shows, and that what the docs say of hooks is so."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from actors.hooks.book import AskHook, HookSubject
from actors.hooks.chain import HookCounts, Verdict
from connectors.cli import run
from connectors.config.hooks import HookConfig
from connectors.hooks.hook import HOOK, HookError, HookRecord
from connectors.hooks.runner import read
from connectors.hooks.tree import connecting
from runtime.store.rows import Commit, Record
from tests.connectors.hooks.test_hook_functions import installed
from tests.fakes.tools.sandbox import FakeSandbox
from tests.support.desk import commit_to, write_database

Output = pytest.CaptureFixture[str]

ROOT = Path(__file__).parents[3]
CONFIG = ROOT / "config"

SETTINGS = """
default_agent = "anna"
store.path = "{db}"
agents.anna.prompt = "You are Anna."
connectors.terminal.kind = "terminal"
models.scripted = {{ kind = "scripted", script = "{script}" }}

[hooks.shout]
events = ["message_received"]
python = "shout"

[hooks.lost]
events = ["message_sending"]
python = "nobody"
order = 1

[hooks.off]
events = ["turn_finished"]
python = "calm"
disabled = true
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "callboard.toml"
    script = CONFIG / "offline_script.toml"
    path.write_text(SETTINGS.format(db=tmp_path / "callboard.db", script=script))
    return path


def listed(config: Path, capsys: Output, *more: str) -> str:
    capsys.readouterr()
    assert called("hooks", "list", "--config", str(config), *more) == 0
    return capsys.readouterr().out


def called(*words: str) -> int:
    return run(list(words))


def wrote(path: Path, row: HookRecord) -> None:
    body = msgspec.json.encode(row)
    record = Record(kind=HOOK, id=row.name, owner="", part=0, body=body)
    commit_to(path, Commit(at=row.at, records=(record,)))


def test_hooks_are_listed_in_order_before_anything_has_run(
    config: Path, capsys: Output
) -> None:
    lines = listed(config, capsys).splitlines()
    assert [line.split()[0] for line in lines] == ["HOOK", "shout", "lost", "off"]
    assert "never run" in lines[1]
    assert "disabled" in lines[3]


def test_what_a_server_wrote_down_is_shown(config: Path, capsys: Output) -> None:
    path = write_database(config.parent / "callboard.db")
    row = HookRecord(
        name="shout",
        state="paused",
        reason="it failed 3 times in a row",
        counts=HookCounts(asked=9, changed=2, cancelled=1, failed=3),
        last_error="it did not answer within 5 seconds",
        last_error_at=1_700_000_000.0,
        started_at=1_700_000_000.0,
        at=1_700_000_100.0,
    )
    wrote(path, row)
    (line,) = [x for x in listed(config, capsys).splitlines() if "shout" in x]
    assert re.search(r"paused +9 +2 +1 +3 .*did not answer", line)
    shown = json.loads(listed(config, capsys, "--json"))
    assert shown[0]["seen"]["counts"]["failed"] == 3


def test_a_hook_is_tried_and_its_verdict_shown(
    config: Path, capsys: Output, tmp_path: Path
) -> None:
    with installed(tmp_path):
        assert called("hooks", "try", "-c", str(config), "shout", "hello") == 0
    assert capsys.readouterr().out == "change\nHELLO try\n"


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [("lost", 1, "no verdict (down)"), ("nobody", 2, "known: shout, lost, off")],
)
def test_what_cannot_be_tried_is_told(
    name: str, code: int, words: str, config: Path, capsys: Output
) -> None:
    assert called("hooks", "try", "-c", str(config), name, "hello") == code
    assert words in capsys.readouterr().err


def test_programs_get_the_verdict_or_why_there_is_none(
    config: Path, capsys: Output, tmp_path: Path
) -> None:
    asked = ("hooks", "try", "-c", str(config), "--json")
    with installed(tmp_path):
        assert called(*asked, "shout", "hello") == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["action"], shown["text"]) == ("change", "HELLO try")
    assert called(*asked, "lost", "hello") == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["trouble"] == "down"
    assert shown["error"]


SILENT = """
import trio
async def shout(event, text, about):
    await trio.sleep_forever()
"""


def test_a_hook_that_never_answers_is_waited_for_no_longer_than_it_may_take(
    config: Path, capsys: Output, tmp_path: Path
) -> None:
    text = config.read_text()
    config.write_text(text.replace("[hooks.shout]", "[hooks.shout]\ntimeout = 0.1"))
    with installed(tmp_path):
        (tmp_path / "callboard_example_hooks.py").write_text(SILENT)
        assert called("hooks", "try", "-c", str(config), "shout", "hello") == 1
    told = "no verdict (timeout): it did not answer within 0.1 s\n"
    assert capsys.readouterr() == ("", told)


def test_the_list_has_the_same_for_people_and_programs(
    config: Path, capsys: Output
) -> None:
    shown = json.loads(listed(config, capsys, "--json"))
    assert [(x["name"], x["state"], x["runs"], x["seen"]) for x in shown] == [
        ("shout", "never run", "python shout", None),
        ("lost", "never run", "python nobody", None),
        ("off", "disabled", "python calm", None),
    ]
    path = write_database(config.parent / "callboard.db")
    counts = HookCounts(asked=4, changed=3, cancelled=2, failed=0)
    row = HookRecord(
        name="off", state="up", reason="", counts=counts, last_error="",
        last_error_at=0.0, started_at=1.0, at=2.0,
    )  # fmt: skip
    wrote(path, row)
    wrote(path, msgspec.structs.replace(row, name="lost"))
    cells = [line.split() for line in listed(config, capsys).splitlines()[1:]]
    assert cells == [
        ["shout", "never", "run", *["-"] * 5],
        ["lost", "up", "4", "3", "2", "0", "-"],
        ["off", "disabled", *["-"] * 5],
    ]


# --- docs/agents/hooks.md --------------------------------------------------------


def section() -> str:
    return (ROOT / "docs/agents/hooks.md").read_text(encoding="utf-8")


def blocks(language: str) -> Sequence[str]:
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", section(), re.DOTALL)
    return found


async def test_the_example_of_the_docs_does_what_it_says(tmp_path: Path) -> None:
    (table,) = tomllib.loads(blocks("toml")[0])["hooks"].values()
    folder = CONFIG / table.pop("folder")
    hook = msgspec.structs.replace(msgspec.convert(table, HookConfig), folder=folder)
    about = HookSubject(id="1", correlation_id="1", connector="terminal", chat="1")
    async with connecting("cards", hook, FakeSandbox(), tmp_path)() as running:
        for text, verdict in (
            ("My card is 4111 1111 1111 1111", "My card is [card number]"),
            ("Call me at 4111", ""),
        ):
            asked = AskHook(event="message_sending", about=about, text=text)
            expected = Verdict("change", verdict) if verdict else Verdict()
            assert await running.ask(asked) == expected


def test_the_answers_that_the_readme_shows_are_answers() -> None:
    lines = [x[2:] for x in "".join(blocks("text")).splitlines() if x[0] == "←"]
    found = [read(line.encode()) for line in lines]
    assert [number for number, _ in found] == ["1", "2", "3"]
    assert isinstance(found[0][1], Verdict)
    assert isinstance(found[2][1], HookError)
