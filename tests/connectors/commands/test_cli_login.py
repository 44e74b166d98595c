"""Proves that links for the page are made, hold once, and can be taken back."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from connectors.cli import run
from connectors.web.page.login_rows import LINK, SESSION, LoginLink, row_id
from connectors.web.page.platform import PageConfig
from runtime.clock import SystemClock
from runtime.sqlite.database import SqliteDatabase
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import decoded
from tests.fakes.web.page import open_page

Shown = pytest.CaptureFixture[str]

SETTINGS = """\
default_agent = "anna"
[models.scripted]
kind = "scripted"
script = "rules.toml"
[connectors.page]
kind = "page"
people = ["sam", "zoe"]
[agents.anna]
prompt = "You are Anna."
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make settings and an empty database."""
    (tmp_path / "callboard.toml").write_text(SETTINGS, encoding="utf-8")
    (tmp_path / "rules.toml").write_text("", encoding="utf-8")
    trio.run(make, tmp_path / "page.db")
    return tmp_path


async def make(path: Path) -> None:
    store = await SqliteStore.open(SqliteFile(path))
    await store.aclose()


def login(folder: Path, *arguments: str) -> int:
    named = [
        "--config",
        str(folder / "callboard.toml"),
        "--db",
        str(folder / "page.db"),
    ]
    return run(["login", *named, *arguments])


def links(folder: Path) -> dict[str, LoginLink]:
    with SqliteDatabase(folder / "page.db").inspect() as rows:
        found = {each.id: decoded(each, LoginLink) for each in rows.entries(LINK)}
    return {name: link for name, link in found.items() if link is not None}


def sessions(folder: Path) -> int:
    with SqliteDatabase(folder / "page.db").inspect() as rows:
        return len(list(rows.entries(SESSION)))


def test_a_link_is_printed_alone_and_kept_as_its_hash(
    folder: Path, capsys: Shown
) -> None:
    assert login(folder) == 0
    shown = capsys.readouterr()
    address, _, token = shown.out.strip().rpartition("/login/")
    assert address == "http://127.0.0.1:8081"
    assert "10 minutes, as sam" in shown.err
    [(name, link)] = links(folder).items()
    assert name == row_id("page", token)
    assert link.person == "sam"
    assert 590 < link.until - SystemClock().wall() <= 600


def test_who_may_not_log_in_gets_no_link(folder: Path, capsys: Shown) -> None:
    assert login(folder, "--as", "eve") == 1
    assert "sam, zoe" in capsys.readouterr().err
    assert login(folder, "--as", "zoe") == 0
    assert [each.person for each in links(folder).values()] == ["zoe"]


def test_links_are_bounded(folder: Path) -> None:
    for _ in range(25):
        assert login(folder) == 0
    assert len(links(folder)) == 20


def test_without_a_page_or_settings_it_is_said_what_to_do(
    folder: Path, capsys: Shown
) -> None:
    assert run(["login", "--db", str(folder / "page.db")]) == 2
    assert "--config" in capsys.readouterr().err
    assert login(folder, "--page", "other") == 2
    assert "--page page" in capsys.readouterr().err
    text = SETTINGS.replace('kind = "page"', 'kind = "http"').replace("people", "# ")
    (folder / "callboard.toml").write_text(text, encoding="utf-8")
    assert login(folder) == 2
    assert "[connectors.page]" in capsys.readouterr().err


def test_a_link_of_the_command_line_lets_in_beside_a_running_server(
    folder: Path, capsys: Shown
) -> None:
    config = PageConfig(port=0, people=("sam", "zoe"))

    async def use() -> None:
        store = await SqliteStore.open(SqliteFile(folder / "page.db"))
        async with open_page(config, store) as bed, bed.browser() as browser:
            await trio.to_thread.run_sync(login, folder, "--as", "zoe")
            token = capsys.readouterr().out.strip().rpartition("/")[2]
            entered = await browser.post("/login", data={"token": token})
            assert entered.status_code == 303
            page = await browser.get("/chat/with/anna")
            assert "zoe</summary>" in page.text
            await trio.to_thread.run_sync(login, folder, "--revoke-all")
            assert "2 browsers logged out" in capsys.readouterr().out
            gone = await browser.get("/chat/with/anna")
            assert gone.headers["location"] == "/login"
        await store.aclose()

    trio.run(use)
    assert (sessions(folder), links(folder)) == (0, {})


def test_before_the_first_start_it_says_what_to_do_first(
    folder: Path, capsys: Shown
) -> None:
    (folder / "page.db").unlink()
    assert login(folder) == 1
    assert "yet: start `callboard serve`, or" in capsys.readouterr().err
    assert not (folder / "page.db").exists()
