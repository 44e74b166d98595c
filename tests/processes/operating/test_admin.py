"""Proves that operators and monitoring can look wherever `callboard serve` runs."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

import click
import httpx
import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from connectors.admin.settings import Applied
from connectors.commands.status import find_door
from connectors.config.app import ADMIN_PORT, AppConfig
from runtime import __version__
from tests.processes.running import (
    PATIENCE,
    Finished,
    run,
    run_here,
    served,
    write_settings,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "key-of-operators"  # noqa: S105  of this test alone
BUDGET = """
[[budgets]]
scope = "all"
hard_usd = 5.0
"""


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        number: int = free.getsockname()[1]
        return number


@pytest.fixture
def admin(port: int) -> Iterator[httpx.Client]:
    base = f"http://127.0.0.1:{port}"
    with httpx.Client(base_url=base, timeout=PATIENCE) as client:
        yield client


def command(folder: Path, port: int, *arguments: str) -> Finished:
    settings = ("--config", "callboard.toml")
    given = (*arguments, *settings)
    return run_here(*given, folder=folder, ADMIN_KEY=SECRET, admin_port=port)


def figures(text: str) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_company_with_a_page_only_can_be_looked_at(
    tmp_path: Path, port: int, admin: httpx.Client
) -> None:
    more = '[connectors.page]\nkind = "page"\nport = 0\n'
    with served(tmp_path, more=more, admin_port=port) as server:
        assert server.process.stdout is not None
        said = [server.process.stdout.readline() for _ in range(3)]
        told = {server.url, *(line.split()[-1] for line in said)}
        assert f"http://127.0.0.1:{port}" in told
        assert "/metrics  numbers for Prometheus" in admin.get("/").text
        assert admin.get("/healthz").text == "ok\n"
        assert admin.get("/readyz").json() == {"ready": True, "reasons": []}
        tree = command(tmp_path, port, "tree", "anna")
        assert "agent  Agent  0/10000" in tree.out, tree.err
        assert admin.get("/v1/models").status_code == 404
        found = figures(admin.get("/metrics").text)
    assert found["callboard_ready",] == 1
    assert found["callboard_connector_up", "page"] == 1
    assert found["callboard_http_requests_total", "404", "admin"] == 1


def test_scrapers_see_what_waits_and_what_is_left(
    tmp_path: Path, port: int, admin: httpx.Client
) -> None:
    with served(tmp_path, more=BUDGET, admin_port=port) as server:
        body = {"model": "anna", "messages": [{"role": "user", "content": "never"}]}
        with (
            httpx.Client(base_url=server.url) as client,
            pytest.raises(httpx.ReadTimeout),
        ):
            client.post("/v1/chat/completions", json=body, timeout=2)
        found = figures(admin.get("/metrics").text)
        assert found["callboard_messages_pending", "running"] == 1
        assert 0 < found["callboard_oldest_message_seconds",] < PATIENCE
        assert found["callboard_deliveries_pending", "pending"] == 0
        assert found["callboard_oldest_delivery_seconds",] == 0
        assert found["callboard_store_bytes",] > 0
        assert found["callboard_store_free_bytes",] > 0
        assert found["callboard_budget_left_ratio", "*", "all", "day"] == 1
        (info,) = [key for key in found if key[0] == "callboard_build_info"]
        assert __version__ in info


def test_it_is_packed_and_written_as_the_scraper_wants(
    tmp_path: Path, port: int, admin: httpx.Client
) -> None:
    with served(tmp_path, admin_port=port):
        plain = admin.get("/metrics", headers={"accept-encoding": "identity"})
        packed = admin.get("/metrics", headers={"accept-encoding": "gzip"})
        wanted = "application/openmetrics-text;version=1.0.0"
        opened = admin.get("/metrics", headers={"accept": wanted})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.num_bytes_downloaded * 3 < len(packed.content)
    assert opened.headers["content-type"].startswith(wanted.partition(";")[0])
    assert opened.text.endswith("# EOF\n")


def test_others_need_a_key_but_probes_do_not(
    tmp_path: Path, port: int, admin: httpx.Client
) -> None:
    more = '[admin]\nhost = "0.0.0.0"\napi_key = { env = "ADMIN_KEY" }\n'
    with served(tmp_path, more=more, admin_port=port, ADMIN_KEY=SECRET):
        assert admin.get("/readyz", headers={"host": "pod:1"}).status_code == 200
        assert admin.get("/metrics").status_code == 401
        assert admin.get("/actors").status_code == 401
        key = {"authorization": f"Bearer {SECRET}", "host": "pod.example:1"}
        assert admin.get("/metrics", headers=key).status_code == 200
        shown = command(tmp_path, port, "tree", "--json")
        assert json.loads(shown.out)["actors"] > 10
        assert SECRET not in shown.said


def test_a_foreign_web_page_cannot_look(
    tmp_path: Path, port: int, admin: httpx.Client
) -> None:
    with served(tmp_path, admin_port=port):
        for path in ("/metrics", "/actors"):
            asked = admin.get(path, headers={"host": "evil.example"})
            assert asked.status_code == 403


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("port={port}", "admin: cannot listen on 127.0.0.1:{port}: address already"),
        (
            'host="0.0.0.0"',
            "admin.host: without api_key, everybody who reaches '0.0.0.0'",
        ),
    ],
)
def test_an_address_that_cannot_be_taken_ends_the_start(
    tmp_path: Path, setting: str, said: str
) -> None:
    write_settings(tmp_path / "here")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        given = f"admin.{setting.format(port=port)}"
        turned_on = "admin.is_on=true"
        done = run(
            "serve", "--set", turned_on, "--set", given, folder=tmp_path / "here"
        )
    assert (done.code, done.out) == (1, "")
    assert said.format(port=port) in done.err


def test_it_can_be_turned_off(tmp_path: Path) -> None:
    with served(tmp_path, more="[admin]\nis_on = false\n"):
        told = run_here("tree", folder=tmp_path)
    assert told.code == 2
    assert "connectors.http: give it a port" in told.err


@pytest.fixture
def usual_port() -> Iterator[None]:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Perhaps somebody has it already, which is as well.
        with suppress(OSError):
            taken.bind(("127.0.0.1", ADMIN_PORT))
            taken.listen()
        yield


@pytest.mark.usefixtures("usual_port")
def test_a_port_that_nobody_set_and_another_has_is_gone_without(tmp_path: Path) -> None:
    with served(tmp_path, CALLBOARD_ADMIN__IS_ON="true") as server:
        log = (tmp_path / "stderr").read_text()
        page = httpx.get(f"{server.url}/readyz", timeout=PATIENCE)
        status = run_here("status", folder=tmp_path, CALLBOARD_ADMIN__IS_ON="true")
    assert "operators and monitoring cannot look at this company" in log
    assert f"another program has 127.0.0.1:{ADMIN_PORT}" in log
    assert page.json()["ready"]
    # The http connector can be asked instead, and is no other company.
    assert "give it a port" in status.out


def test_no_other_company_is_asked_in_its_place() -> None:
    running = Applied(7, 0.0, {})
    page = AppConfig()
    with pytest.raises(click.UsageError, match="process 7 has no address for op"):
        find_door(page, running=running)
    there = msgspec.structs.replace(running, admin=("0.0.0.0", 4711))  # noqa: S104
    assert find_door(page, running=there).address == "http://127.0.0.1:4711"
    assert find_door(page).address == f"http://127.0.0.1:{ADMIN_PORT}"


def test_a_port_that_is_set_and_taken_ends_the_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        write_settings(tmp_path)
        found = run("serve", folder=tmp_path, admin_port=port)
    assert found.code == 1
    assert f"admin: cannot listen on 127.0.0.1:{port}: address already in" in found.err
