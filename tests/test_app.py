"""Proves that a company is put together from settings, and taken apart again whole."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import httpx
import msgspec
import pytest

from connectors.app import open_app
from connectors.sandbox.plan import SandboxError
from connectors.settings import load_app
from connectors.tool_config import WorkspaceConfig
from connectors.transports import serving
from connectors.web.errors import ListenError
from tests.processes.running import write_settings

if TYPE_CHECKING:
    from pathlib import Path

    from connectors.config import AppConfig

SECOND = '[connectors.second]\nkind = "http"\nport = {port}'


def load(folder: Path, *, more: str = "") -> AppConfig:
    path = write_settings(folder, more=more)
    database = folder / "callboard.db"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("callboard.db", str(database)), encoding="utf-8")
    return load_app(path, {}).value


async def test_a_company_is_ready_when_its_connectors_run(tmp_path: Path) -> None:
    config = load(tmp_path)
    async with open_app(config, serving(config)) as app:
        assert await app.readiness() == ()
        assert [*app.transports] == ["http"]
        assert not app.ended["http"].is_set()
    assert await app.readiness() == ("connector http is not running",)


async def test_a_start_that_fails_gives_back_what_it_took(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        config = load(tmp_path, more=SECOND.format(port=port))
        with pytest.raises(ListenError, match=r"connectors\.second: cannot listen"):
            async with open_app(config, serving(config)):
                pytest.fail("it started")
    async with open_app(config, serving(config)) as app:
        assert await app.readiness() == ()


async def test_a_terminal_is_not_served(tmp_path: Path) -> None:
    config = load(tmp_path, more='[connectors.tty]\nkind = "terminal"')
    assert [*serving(config)] == ["http"]


LISTED = SECOND + '\n[connectors.second.access]\nallowed = ["sam"]'


async def test_only_users_that_are_listed_are_answered(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = load(tmp_path, more=LISTED.format(port=port))
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    answers: list[httpx.Response] = []
    async with open_app(config, serving(config)) as app, httpx.AsyncClient() as client:
        for user in ("sam", "eve", ""):
            messages = [{"role": "user", "content": "hello"}]
            body = {"model": "anna", "messages": messages, "user": user}
            answers.append(await client.post(url, json=body))
        text = app.metrics.render().decode()
    assert [each.status_code for each in answers] == [200, 403, 403]
    assert answers[1].json()["error"]["code"] == "not_admitted"
    assert 'connector="second",reason="unknown_sender"} 2.0' in text


SHELL = '[agents.kit]\nprompt = "You are Kit."\ntools = ["run_shell"]'


async def test_who_runs_programs_has_a_sandbox_and_its_figures(tmp_path: Path) -> None:
    config = load(tmp_path, more=SHELL)
    async with open_app(config, serving(config)) as app:
        text = app.metrics.render().decode()
    assert 'callboard_sandbox_in_force{feature="files",kind="' in text


async def test_a_workspace_that_holds_the_database_is_refused(tmp_path: Path) -> None:
    config = msgspec.structs.replace(
        load(tmp_path, more=SHELL), workspace=WorkspaceConfig(path=str(tmp_path))
    )
    with pytest.raises(SandboxError, match="put one of the two elsewhere"):
        async with open_app(config, serving(config)):
            pytest.fail("it started")
