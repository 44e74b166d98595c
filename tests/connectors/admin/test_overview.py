"""Proves that the overview and `callboard status` say what the figures say."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from actors.journal.records import USAGE
from actors.messages.inbound import Usage
from actors.messages.usage import Spent
from actors.metrics import LineMetrics
from actors.models.budget import Spender
from actors.models.spending import CallRecord, PaidCall
from connectors.admin.nodes import (
    ENDED,
    GONE,
    RUNS,
    STANDS_BY,
    ListedNode,
    NodeReply,
    NodeReport,
)
from connectors.admin.queue import read_waiting, sum_figures
from connectors.admin.settings import Applied, AppliedFile
from connectors.admin.usage import BudgetStatus
from connectors.cli import run
from connectors.commands.status import (
    CompanyStatus,
    Door,
    ask,
    find_door,
    least_left,
    lines,
    with_nodes,
)
from connectors.config.app import AdminConfig, AppConfig, HttpConfig
from connectors.settings.load import load_app
from runtime import __version__
from runtime.clock import SystemClock
from runtime.secret import Secret
from runtime.sqlite.database import SqliteDatabase
from runtime.store.rows import Commit
from runtime.telemetry.metrics import Metrics
from tests.fakes.sites.threaded_site import open_little_site
from tests.support.desk import commit_to, write_database
from tests.support.store.rows import noting

Shown = pytest.CaptureFixture[str]


def test_figures_are_summed_up() -> None:
    metrics = Metrics()
    line = LineMetrics(metrics)
    line.messages.add(1, "cli", "accepted")
    line.messages.add(1, "web", "accepted")
    line.messages.add(1, "web", "duplicate")
    line.turns.add(1, "anna", "replied")
    line.killed.add(1, "Session")
    sums = sum_figures(metrics.figures())
    assert sums.messages == {"accepted": 2, "duplicate": 1}
    assert sums.connectors == {"cli": 1, "web": 1}
    assert (sums.turns, sums.killed, sums.cost) == ({"replied": 1}, 1, 0.0)
    assert sums.started_at > 0


def test_what_waits_is_counted(tmp_path: Path) -> None:
    with SqliteDatabase(write_database(tmp_path / "x.db")).inspect() as rows:
        waiting = read_waiting(rows)
    assert (waiting.open, waiting.dead) == (2, 1)
    assert waiting.unsaid == waiting.outbox["pending"]


SETTINGS = """
[models.main]
kind = "scripted"
script = "script.toml"
[agents.anna]
prompt = "I am Anna."
model = "main"
[admin]
port = 1
[store]
path = "desk.db"
[connectors.terminal]
kind = "terminal"
[[budgets]]
scope = "all"
hard_usd = 5.0
hard_tokens = 1000
"""

BEN = """
[agents.ben]
prompt = "I am Ben."
model = "main"
"""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a database beside settings in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.toml").write_text('[default]\nreply = "so"\n')
    (tmp_path / "callboard.toml").write_text(SETTINGS)
    return write_database(tmp_path / "desk.db")


def shown_by(capsys: Shown, *arguments: str) -> list[str]:
    """Ask for the status, which is no good one; ages are the same in each."""
    capsys.readouterr()
    assert run(["status", *arguments]) == 1
    shown = capsys.readouterr().out.replace(f"{Path.cwd()}/", "")
    return re.sub(r"(oldest|in use for) \w+", r"\1 AGE", shown).splitlines()


QUEUE = [
    "waiting    2 messages (oldest AGE), 3 deliveries (oldest AGE)",
    "failed     1 message, 0 deliveries",
    "schedule   0 appointments",
]
TO_DO = [
    "to do      1 message failed: callboard queue list",
    "to do      something waits for 59m: callboard queue list",
]


def test_a_copy_tells_what_waits_and_what_failed(desk: Path, capsys: Shown) -> None:
    shown = shown_by(capsys, "--db", str(desk))
    assert shown[:-1] == [
        f"callboard {__version__}: nobody serves",
        "database   desk.db",
        *QUEUE,
        "today      0 turns, 0 tokens, 0.00 $",
        "",
        TO_DO[0],
    ]
    assert run(["status", "--db", str(desk), "--json"]) == 1
    found = msgspec.json.decode(capsys.readouterr().out, type=CompanyStatus)
    assert 3000 < found.oldest_message_seconds < found.oldest_delivery_seconds < 3700
    assert (found.ready, found.since, found.process, found.node) == (None, 0, None, "")
    counts = found.messages_waiting, found.messages_failed, found.deliveries_waiting
    assert (*counts, found.deliveries_failed) == (2, 1, 3, 0)


def spend(desk: Path, dollars: float, tokens: int) -> None:
    """Have a call to a model paid now, and its turn be over."""
    usage = Usage(tokens, 0)
    spent = Spent(provider="main", model="m", account="main", usage=usage, cost=dollars)
    now = SystemClock().wall()
    paid = CallRecord(who=Spender("anna", "cli/sam"), spent=spent)
    turn = {"connector": "cli", "sender_id": "sam", "status": "replied", "attempt": 1}
    sums = {"input_tokens": tokens, "output_tokens": 1, "cost": dollars, "seconds": 1}
    named = {"agent": "anna", "provider": "main", "model": "m", "rounds": 1}
    record = noting("now", kind=USAGE, body=msgspec.json.encode(turn | sums | named))
    commit_to(desk, PaidCall("paid", now, paid).commit())
    commit_to(desk, Commit(at=now, records=(record,)))


def test_what_was_spent_today_counts_and_little_left_is_to_be_done(
    desk: Path, capsys: Shown
) -> None:
    nobody = "to do      nobody serves: callboard serve"
    before = shown_by(capsys)
    assert "budgets    1; the least: 5.00 $ left for all" in before
    assert before[before.index("") + 1 :][:2] == [nobody, TO_DO[0]]
    spend(desk, 4.5, 900)
    after = shown_by(capsys)
    assert "budgets    1; the least: 0.50 $ left for all" in after
    budget = "left in the budget of all for a day: callboard usage --budgets"
    assert after[-2:] == [
        f"to do      0.50 of 5.00 $ {budget}",
        f"to do      100 of 1,000 tokens {budget}",
    ]
    assert run(["status", "--json"]) == 1
    found = msgspec.json.decode(capsys.readouterr().out, type=CompanyStatus)
    assert found.dollars_today >= 4.5
    assert found.tokens_today >= 901
    assert found.turns_today in {1, 5}  # the others were an hour ago


def test_each_budget_is_shown_also_if_only_anothers_is_spent(
    desk: Path, capsys: Shown
) -> None:
    more = "".join(
        f'[[budgets]]\nscope = "agent"\nwho = "{who}"\nhard_usd = 2.0\n'
        for who in ("anna", "ben")
    )
    desk.with_name("callboard.toml").write_text(SETTINGS + BEN + more)
    spend(desk, 0.5, 10)
    assert run(["usage", "--budgets"]) == 0
    assert [each.split() for each in capsys.readouterr().out.splitlines()[1:]] == [
        ["all", "all", "day", "0.5000", "4.5000", "10", "990"],
        ["agent", "anna", "day", "0.5000", "1.5000", "10", "-"],
        ["agent", "ben", "day", "0.0000", "2.0000", "0", "-"],
    ]
    assert run(["usage", "--budgets", "--db", str(desk)]) == 2
    assert "give --config FILE" in capsys.readouterr().err


Answers = dict[str, tuple[int, bytes]]


@contextmanager
def running(
    desk: Path, answers: Answers, told: tuple[dict[str, str], str]
) -> Generator[None]:
    """Have a process note what it goes by, and somebody answer at its address."""
    app = load_app(desk.with_name("callboard.toml"), {}).value
    with open_little_site(answers) as site:
        host, port = site.url.removeprefix("http://").split(":")
        with AppliedFile(desk, b"k" * 32, admin=(host, int(port))) as file:
            file.write(app, SystemClock().wall() - 7200, told)
            yield


def test_a_process_that_runs_says_itself_whether_it_is_ready(
    desk: Path, capsys: Shown
) -> None:
    process = f"process {os.getpid()}, settings in use for AGE"
    with running(
        desk, {"GET /readyz": (200, b'{"ready":true,"reasons":[]}')}, ({}, "")
    ):
        shown = shown_by(capsys)
    assert shown[0] == f"callboard {__version__}: {process}"
    assert shown[1:6] == ["database   desk.db", "ready      yes", *QUEUE]
    assert TO_DO[0] in shown
    assert not [each for each in shown if "serve" in each or "ready:" in each]
    unready = {"GET /readyz": (503, b'{"ready":false,"reasons":["no \\u001b model"]}')}
    names = "store.path, nodes.name"
    told = {"store.path": "it is open", "nodes.name": "it has joined"}
    with running(desk, unready, (told, "line 3 is wrong")):
        shown = shown_by(capsys)
        at = shown.index("") + 1
        assert shown[2] == "ready      NO"
        assert shown[at : at + 3] == [
            "to do      mend the settings, which are not in use: line 3 is wrong",
            f"to do      restart it, to take over {names}: callboard config diff",
            "to do      not ready: no ␛ model",
        ]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((200, b"hello"), "another program answers at the address of [admin]"),
        ((500, b"oh"), "nobody knows whether it is ready: http"),
    ],
)
def test_of_an_answer_that_says_nothing_it_is_said_what_is_wrong(
    desk: Path, capsys: Shown, answer: tuple[int, bytes], why: str
) -> None:
    with running(desk, {"GET /readyz": answer}, ({}, "")):
        shown = shown_by(capsys)
    assert shown[2] == "ready      not known"
    assert shown[shown.index("") + 1].startswith(f"to do      {why}")


def node(
    name: str, state: str, report: NodeReport | None = None, **more: Any
) -> NodeReply:
    """Make what a node said, or not."""
    listed = ListedNode(name, state, 4, ("irc",), "m", 1, "", more.pop("release", ""))
    return NodeReply(listed, body=msgspec.json.encode(report), **more)


COMPANY = CompanyStatus(release="1.2", database="db", node="a")


def report(*reasons: str, turns: int = 0) -> NodeReport:
    return NodeReport(reasons, 1, turns, 0.0, ())


def test_each_node_that_needs_somebody_is_named_with_the_reason() -> None:
    replies = [
        node("a", RUNS, report("own reason", turns=2)),
        node("b", "works on its parts", report("no disk", "no model", turns=3)),
        node("c", GONE, why="it is gone"),
        node("d", "works on its parts", why="no answer"),
        node("e", STANDS_BY, why="no actors run there"),
        node("f", ENDED, why="it has ended"),
        node("g", "works on its parts", release="0.0.1"),
        node("h", "works on its parts", report()),
    ]
    unread = "runs release 0.0.1, and its answer cannot be read by"
    to_do: list[str] = []
    found = with_nodes(COMPANY, replies, to_do)
    assert to_do == [
        "node b is not ready: no disk; no model",
        "node c is gone: start it, or callboard nodes remove c",
        "node d says nothing: no answer",
        f"node g says nothing: {unread} {__version__}",
    ]
    states = [(each.ready, each.turns) for each in found.nodes]
    assert states[:3] == [(False, 2), (False, 3), (None, None)]
    assert states[-1] == (True, 0)
    to_do.clear()
    with_nodes(COMPANY, replies[7:], to_do)
    assert to_do == ["no node runs the company: callboard nodes list"]
    with_nodes(COMPANY, [], to_do)
    assert len(to_do) == 1


BUSY = "1,000 of them being answered"
WHOLE = [
    "callboard 1.2: node a, process 7, settings in use for 2h",
    "database   db",
    "ready      not known",
    "nodes      NODE  STATE             READY  PARTS  ANSWERING  CONNECTORS",
    "           a     runs the company  yes    4      2          irc",
    "           b     is gone           -      4      -          irc",
    "           all   -                 -      8      2          -",
    f"waiting    1,200 messages (oldest 1m), {BUSY}, 0 deliveries",
    "failed     0 messages, 1 delivery",
    "schedule   2 appointments, 1 paused",
    "pairing    1 stranger asking to be let in: callboard pairing list",
    "today      0 turns, 0 tokens, 0.00 $",
    "budgets    1; the least: 1,200 tokens left for x␛",
    "all is well",
]
"""The report of a company in which every line has something to show."""


def test_all_that_there_is_to_say_is_said() -> None:
    replies = [node("a", RUNS, report(turns=2)), node("b", GONE, why="gone")]
    status = with_nodes(
        msgspec.structs.replace(
            COMPANY,
            process=7,
            since=SystemClock().wall() - 7230,
            messages_waiting=1200,
            messages_running=1000,
            oldest_message_seconds=65.0,
            deliveries_failed=1,
            appointments=2,
            appointments_resting=1,
            people_asking=1,
            budgets=(budget("x\x1b", None, 1200),),
        ),
        replies,
        [],
    )
    assert [*lines(status)] == WHOLE
    stands_by = [*lines(msgspec.structs.replace(COMPANY, node="b", to_do=("do\x1b",)))]
    assert stands_by[0] == "callboard 1.2: node b stands by"
    assert stands_by[-2:] == ["", "to do      do␛"]


def budget(who: str, dollars: float | None, tokens: int | None) -> BudgetStatus:
    return BudgetStatus(
        scope="all",
        who=who,
        period="day",
        spent_usd=1.0,
        left_usd=dollars,
        spent_tokens=1,
        left_tokens=tokens,
    )


@pytest.mark.parametrize(
    ("budgets", "told"),
    [
        ([("a", 2.0, 5), ("b", 1.5, 9), ("c", None, 1)], "1.50 $ left for b"),
        ([("a", None, 5000), ("b", None, 4000)], "4,000 tokens left for b"),
        ([("a", None, None), ("b", 0.0, None)], "0.00 $ left for b"),
        ([("a", None, None)], "0 tokens left for a"),
    ],
)
def test_the_least_that_is_left_is_dollars_if_any_budget_has_them(
    budgets: list[tuple[str, float | None, int | None]], told: str
) -> None:
    assert least_left([budget(*each) for each in budgets]) == told


def test_a_company_is_asked_with_its_key_and_what_it_says_is_told() -> None:
    answers = {
        "GET /actors": (200, b"{}"),
        "GET /none": (404, b'{"error":{"message":"no such \\u001b actor"}}'),
        "GET /other": (404, b"\xff"),
        "GET /full": (503, b"{}"),
    }
    with open_little_site(answers) as site:
        door = Door("0.0.0.0", int(site.url.rpartition(":")[2]), Secret("opens-all"))  # noqa: S104
        assert ask(door, "/actors", {"top": "x"}).content == b"{}"
        assert ask(door, "/full", {}).status_code == 503
        assert site.headers[0]["authorization"] == "Bearer opens-all"
        ask(msgspec.structs.replace(door, key=None), "/actors", {})
        assert "authorization" not in site.headers[-1]
        with pytest.raises(click.ClickException, match=r"^no such ␛ actor$"):
            ask(door, "/none", {})
        with pytest.raises(
            click.ClickException, match=r"^http://127\.0.*/other answers 404"
        ):
            ask(door, "/other", {})
    with pytest.raises(click.ClickException, match="is `callboard serve` running"):
        ask(door, "/actors", {})


def test_where_a_company_is_asked_is_found_or_said_how_to_give_it_one() -> None:
    web = HttpConfig(port=5, host="::")
    assert find_door(AppConfig()) == Door("127.0.0.1", 8082, None)
    two = AppConfig(admin=AdminConfig(is_on=False), connectors={"x": web, "y": web})
    assert find_door(two, "y").address == "http://[::1]:5"
    one = msgspec.structs.replace(two, connectors={"x": web})
    assert find_door(one).port == 5
    for app, connector, why in (
        (two, None, "there are several; give --connector: x, y"),
        (AppConfig(), "x", "no such HTTP server: set is_on = true and a port in"),
        (AppConfig(admin=AdminConfig(port=0)), None, "no such HTTP server"),
        (AppConfig(connectors={"x": HttpConfig(port=0)}), "x", "x: give it a port"),
    ):
        with pytest.raises(click.UsageError, match=re.escape(why)):
            find_door(app, connector)
    applied = Applied(process=7, at=0.0, settings={})
    with pytest.raises(click.UsageError, match=r"process 7 has no address .*127\.0"):
        find_door(AppConfig(), running=applied)
    there = msgspec.structs.replace(applied, admin=("::1", 9))
    assert find_door(AppConfig(), running=there).address == "http://[::1]:9"
