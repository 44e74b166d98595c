"""Proves that other programs are told what becomes of changed settings."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import trio

from connectors.app.app import open_app
from connectors.app.reload.reload import Reloading, SettingsSource
from connectors.settings.load import load_app
from runtime.telemetry.logs import Redactor
from tests.fakes.sites.site import open_site, response
from tests.fakes.web.webhooks import SECRET
from tests.processes.running import write_settings

OUT = """
[webhooks.out.ops]
url = "http://127.0.0.1:{port}/"
private = true
secret = {{ file = "key" }}
events = ["settings.*"]
"""
BUDGET = '[[budgets]]\nscope = "all"\nhard_tokens = 1000\n'
BROKEN = '[models.far]\nkind = "opnai"\n'


def write(folder: Path, more: str) -> Path:
    path = write_settings(folder, more=more)
    text = path.read_text(encoding="utf-8")
    database = str(folder / "var" / "callboard.db")
    path.write_text(text.replace("callboard.db", database), encoding="utf-8")
    return path


async def test_what_becomes_of_changed_settings_is_told(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(SECRET, encoding="utf-8")
    both = trio.Event()

    def respond(_path: str) -> bytes:
        if len(site.requests) == 2:
            both.set()
        return response(status="204 No Content")

    async with open_site(respond) as site:
        out = OUT.format(port=site.port)
        load = partial(load_app, write(tmp_path, out), {})
        source = SettingsSource(load(), load, Redactor())
        async with open_app(source.settings.value, {}) as app:
            reloading = Reloading(app, source.settings.value, source)
            write(tmp_path, out + BUDGET)
            assert await reloading.reload() == "applied"
            write(tmp_path, out + BROKEN)
            assert await reloading.reload() == "refused"
            with trio.fail_after(10):
                await both.wait()
    bodies = [json.loads(each.partition(b"\r\n\r\n")[2]) for each in site.requests]
    told = {each["type"]: each["data"] for each in bodies}
    assert told["settings.applied"]["applied"] == ["budgets"]
    assert "opnai" in told["settings.refused"]["why"]
