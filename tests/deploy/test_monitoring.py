"""Proves that alerts fire when they should, and that dashboards show what there is."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.processes.running import PATIENCE, ROOT, served

DEPLOY = ROOT / "config" / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
BOARDS = sorted((DEPLOY / "grafana").glob("*.json"))

METRIC = re.compile(r"\b(?:callboard|process)_\w+")
LABELS = re.compile(
    r"(\w+)\s*(?:=~|!~|!=|=)\s*\"|by \(([\w, ]+)\)|\{\{\s*\$?(?:labels\.)?(\w+)"
)
QUOTED = re.compile(r"[\"']callboard_")
BY_PROMETHEUS = {"__name__", "instance", "job", "le"}
STANDING_BY = "callboard_node_standing_by"
VALUE = "value"
"""In the texts of alerts, the number itself."""

PROMTOOL = shutil.which("promtool") or ""
promtool = pytest.mark.skipif(
    not PROMTOOL, reason="no promtool: apt-get install prometheus"
)


class Case(NamedTuple):
    """Series at each of the minutes 0 to 60, as promtool writes them."""

    fires: dict[str, str]
    is_quiet: dict[str, str]


BUSY = "0+60x60"
CASES = {
    "CallboardDown": Case(
        {'up{job="callboard",instance="a"}': "1 0x59"},
        {'up{job="callboard",instance="a"}': "1 1x59", 'up{job="other"}': "0x60"},
    ),
    "CallboardNotReady": Case({"callboard_ready": "0x60"}, {"callboard_ready": "1x60"}),
    "CallboardConnectorDown": Case(
        {'callboard_connector_up{connector="matrix"}': "0x60"},
        {'callboard_connector_up{connector="matrix"}': "0 1x59"},
    ),
    "CallboardMessagesWait": Case(
        {"callboard_oldest_message_seconds": "0+60x60"},
        {"callboard_oldest_message_seconds": "0 300 10x58"},
    ),
    "CallboardDeliveriesWait": Case(
        {"callboard_oldest_delivery_seconds": "0+60x60"},
        {"callboard_oldest_delivery_seconds": "0x60"},
    ),
    "CallboardMessagesFailed": Case(
        {'callboard_messages_pending{state="dead"}': "0x50 2x9"},
        {'callboard_messages_pending{state="dead"}': "7x60"},
    ),
    "CallboardDeliveriesFailed": Case(
        {'callboard_deliveries_pending{state="dead"}': "0x50 2x9"},
        {'callboard_deliveries_pending{state="dead"}': "7x60"},
    ),
    "CallboardTurnsFail": Case(
        {
            'callboard_turns_total{outcome="ok"}': BUSY,
            'callboard_turns_total{outcome="unavailable"}': "0+30x60",
        },
        {
            'callboard_turns_total{outcome="ok"}': BUSY,
            'callboard_turns_total{outcome="cancelled"}': BUSY,
            'callboard_turns_total{outcome="unavailable"}': "0+6x60",
        },
    ),
    "CallboardAccountRefused": Case(
        {"callboard_accounts_refused": "1x60"}, {"callboard_accounts_refused": "0x60"}
    ),
    "CallboardBudgetLow": Case(
        {'callboard_budget_left_ratio{scope="user"}': "0.05x60"},
        {'callboard_budget_left_ratio{scope="user"}': "0.5x60"},
    ),
    "CallboardDiskFull": Case(
        {"callboard_store_free_bytes": "100000000x60"},
        {"callboard_store_free_bytes": "900000000x60"},
    ),
    "CallboardDatabaseDamaged": Case(
        {"callboard_store_damaged": "1x60"}, {"callboard_store_damaged": "0x60"}
    ),
    "CallboardLoopBlocked": Case(
        {'callboard_watchdog_actions_total{action="loop_blocked"}': "0+1x60"},
        {'callboard_watchdog_actions_total{action="broken_off"}': "0+1x60"},
    ),
    "CallboardRestarts": Case(
        {'callboard_actor_restarts_total{kind="Turn",reason="a"}': "0+2x60"},
        {'callboard_actor_restarts_total{kind="Turn",reason="a"}': "0x30 3x29"},
    ),
}


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def panels() -> Iterator[tuple[str, str]]:
    """Give the board and the text of each query, legend and variable."""
    for path in BOARDS:
        board = json.loads(path.read_text(encoding="utf-8"))
        for panel in board["panels"]:
            for target in panel["targets"]:
                yield path.stem, target["expr"]
                yield path.stem, target["legendFormat"]
        for each in board["templating"]["list"]:
            yield path.stem, str(each["query"])


@cache
def declared() -> dict[str, set[str]]:
    """Read the labels of each metric where it is made."""
    found: dict[str, set[str]] = {}
    for package in ("actors", "connectors"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)) if QUOTED.search(text) else ():
                match node:
                    case ast.Call(args=[ast.Constant(value=str(name)), _, *rest]):
                        labels = rest[0] if rest else ast.Tuple([])
                    case _:
                        continue
                if name.startswith("callboard_") and isinstance(labels, ast.Tuple):
                    texts = [
                        x.value for x in labels.elts if isinstance(x, ast.Constant)
                    ]
                    found[name] = set(map(str, texts))
    return found


def is_taken(*arguments: str) -> None:
    """Have promtool look at a file."""
    done = subprocess.run(
        [PROMTOOL, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@promtool
def test_the_rules_are_right() -> None:
    is_taken("check", "rules", str(ALERTS))


@promtool
def test_prometheus_understands_each_query_of_a_dashboard(tmp_path: Path) -> None:
    asked = [text for _, text in panels() if "{instance=~" in text]
    assert len(asked) > 50
    records = [
        {
            "record": f"query:{number}",
            "expr": re.sub(r"\[\$__\w+\]", "[5m]", text),
        }
        for number, text in enumerate(asked)
    ]
    file = tmp_path / "queries.yml"
    groups = {"groups": [{"name": "queries", "rules": records}]}
    file.write_text(yaml.safe_dump(groups), encoding="utf-8")
    is_taken("check", "rules", str(file))


def test_each_alert_has_a_case_and_says_what_to_do() -> None:
    assert {each["alert"] for each in rules()} == CASES.keys()
    for each in rules():
        assert each["labels"]["severity"] in {"page", "ticket"}
        assert len(each["annotations"]["runbook"]) > 30
        assert each["annotations"]["summary"].endswith(".")


@promtool
@pytest.mark.parametrize("is_firing", [True, False])
@pytest.mark.parametrize("alert", CASES)
def test_an_alert_fires_when_it_should(
    alert: str, tmp_path: Path, *, is_firing: bool
) -> None:
    case = CASES[alert]
    series = case.fires if is_firing else case.is_quiet
    test = {
        "interval": "1m",
        "input_series": [{"series": k, "values": v} for k, v in series.items()],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})',
                "eval_time": "55m",
                "exp_samples": [{"labels": "{}", "value": 1}] if is_firing else [],
            }
        ],
    }
    file = tmp_path / "test.yml"
    file.write_text(
        yaml.safe_dump({"rule_files": [str(ALERTS)], "tests": [test]}), encoding="utf-8"
    )
    is_taken("test", "rules", str(file))


def test_each_metric_and_label_that_is_named_exists(tmp_path: Path) -> None:
    body = {"model": "anna", "messages": [{"role": "user", "content": "sum 6 * 7"}]}
    with (
        served(tmp_path) as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE) as client,
    ):
        client.post("/v1/chat/completions", json=body)
        text = client.get("/metrics").text
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    samples = {f"{name}_bucket" for name, kind in kinds.items() if kind == "histogram"}
    samples |= {*kinds.keys(), STANDING_BY}  # this one is of nodes that do not serve
    labels = set(BY_PROMETHEUS).union(*declared().values())
    for family in text_string_to_metric_families(text):
        labels |= {key for sample in family.samples for key in sample.labels}
    texts = [text for _, text in panels()]
    for each in rules():
        texts += [each["expr"], *each["annotations"].values()]
    named = {name for text in texts for name in METRIC.findall(text)}
    assert len(named) > 30
    assert named - samples == set()
    used = {
        word
        for text in texts
        for match in LABELS.findall(text)
        for word in re.findall(r"\w+", " ".join(match))
    }
    assert used - labels - {VALUE} == set()


def test_a_query_asks_a_metric_for_labels_that_it_has() -> None:
    own = declared()
    checked = 0
    for _, text in [*panels(), *(("alerts", each["expr"]) for each in rules())]:
        for name, inside in re.findall(r"(callboard_\w+)\{([^}]*)\}", text):
            base = re.sub(r"_(total|bucket)$", "", name)
            if base in own:
                wanted = set(re.findall(r"(\w+)\s*[=!]", inside)) - BY_PROMETHEUS
                assert wanted <= own[base], text
                checked += 1
    assert checked > 30


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_a_dashboard_has_what_grafana_needs(path: Path) -> None:
    board = json.loads(path.read_text(encoding="utf-8"))
    assert board["uid"] == f"callboard-{path.stem}"
    assert board["schemaVersion"] >= 39
    places = [tuple(each["gridPos"].values()) for each in board["panels"]]
    assert len(set(places)) == len(places)
    assert len({each["id"] for each in board["panels"]}) == len(places)
    assert all(each["targets"] for each in board["panels"])


def test_the_dashboards_are_those_of_the_page() -> None:
    assert {each.stem for each in BOARDS} == {
        "actors",
        "connector",
        "models",
        "nodes",
        "overview",
    }
