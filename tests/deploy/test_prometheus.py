"""The panels of the dashboards, asked of a Prometheus that watches a real server."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.processes.running import PATIENCE, ROOT, served

pytestmark = pytest.mark.live

BOARDS = sorted((ROOT / "config" / "deploy" / "grafana").glob("*.json"))
SCRAPE = """
global: {{ scrape_interval: 1s }}
scrape_configs:
  - job_name: callboard
    static_configs: [{{ targets: ["127.0.0.1:{port}"] }}]
"""
METRIC = re.compile(r"\b(?:callboard|process)_\w+")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def panels() -> Iterator[tuple[str, str]]:
    """Give the title and each query of each panel, with every variable taken as all."""
    for path in BOARDS:
        board: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for panel in board["panels"]:
            for target in panel["targets"]:
                query = target["expr"].replace("$__rate_interval", "1m")
                query = query.replace("$__interval", "1m").replace("$__range", "1m")
                query = re.sub(r'="\$\{?\w+\}?"', '=~".*"', query)
                yield (
                    f"{path.stem}: {panel['title']}",
                    re.sub(r"\$\{?\w+\}?", ".*", query),
                )


async def rows(client: httpx.AsyncClient, query: str) -> list[Any]:
    """Ask Prometheus; empty: it knows nothing of that.

    Raises:
        AssertionError: it does not understand the question.
    """
    answer = await client.get("/api/v1/query", params={"query": query})
    found: dict[str, Any] = answer.json()
    assert found["status"] == "success", (query, found)
    result: list[Any] = found["data"]["result"]
    return result


@contextmanager
def watched(folder: Path, admin: int) -> Generator[str]:
    """Run a Prometheus that watches a server; gives its address."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("there is no prometheus here")
    config, port = folder / "prometheus.yml", free_port()
    config.write_text(SCRAPE.format(port=admin), encoding="utf-8")
    words = (
        f"--config.file={config}",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{port}",
    )
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen([program, *words], stdout=log, stderr=log) as process,
    ):
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


async def until_it_has_looked(client: httpx.AsyncClient, talk: httpx.Request) -> None:
    """Talk to the company until Prometheus has looked at it four times."""
    async with httpx.AsyncClient(timeout=PATIENCE) as people:
        with trio.fail_after(2 * PATIENCE):
            while True:
                assert (await people.send(talk)).status_code == 200
                with suppress(httpx.TransportError, ValueError):
                    if await rows(client, "count_over_time(up[1m]) > 3"):
                        return
                await trio.sleep(0.1)


async def test_each_panel_shows_something_of_a_server_that_works(
    tmp_path: Path,
) -> None:
    admin = free_port()
    with (
        watched(tmp_path, admin) as address,
        served(tmp_path / "home", admin_port=admin) as server,
    ):
        said = [{"role": "user", "content": "sum 1 + 2"}]
        url = f"{server.url}/v1/chat/completions"
        talk = httpx.Request("POST", url, json={"model": "anna", "messages": said})
        async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
            await until_it_has_looked(client, talk)
            series = await rows(client, '{job="callboard"}')
            known = {each["metric"]["__name__"] for each in series}
            asked = [x for x in panels() if set(METRIC.findall(x[1])) <= known]
            assert len(asked) > 20, known
            assert [x for x in asked if not await rows(client, x[1])] == []
