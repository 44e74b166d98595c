"""Proves that what stops a start is told in one place, without a traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes.running import (
    PATIENCE,
    ROOT,
    Finished,
    run,
    run_here,
    served,
    write_settings,
)

MISTAKES = {
    "an unknown key": (
        'delegates = ["ben"]',
        'delegats = ["ben"]',
        (
            "callboard.toml:21:1: unknown key 'delegats' in agents.anna\n"
            "  hint: did you mean 'delegates'?"
        ),
    ),
    "a wrong type": (
        "port = 0",
        'port = "zero"',
        "callboard.toml:16:8: connectors.http.port must be a whole number",
    ),
    "a missing secret": (
        "port = 0",
        'port = 0\napi_key = { env = "NOT_SET" }',
        (
            "callboard.toml:17:19: connectors.http.api_key: the environment variable"
            " NOT_SET is not set\n  hint: set it before you start"
        ),
    ),
    "an unknown agent in a route": (
        "[models.scripted]",
        '[[routes]]\nagent = "bne"\n[models.scripted]',
        (
            "callboard.toml:11:9: routes[0].agent: there is no agent 'bne'\n"
            "  hint: did you mean 'ben'?"
        ),
    ),
    "an unknown colleague": (
        'delegates = ["ben"]',
        'delegates = ["ben", "carl"]',
        "there is no agent 'carl'",
    ),
    "a script that is not there": (
        '"script.toml"',
        '"scirpt.toml"',
        "callboard.toml:12:10: models.scripted.script: there is no file scirpt.toml",
    ),
    "a script that is no TOML": (
        '"script.toml"',
        '"notes.txt"',
        "notes.txt:1:6: not valid TOML",
    ),
    "a script that is no text": ('"script.toml"', '"picture"', "is not UTF-8 text"),
    "an address of another machine": (
        "port = 0",
        'port = 0\nhost = "0.0.0.0"',
        "without api_key, everybody who reaches '0.0.0.0' may use the agents",
    ),
    "a database that is a folder": (
        '"callboard.db"',
        '"."',
        "is a folder; give a file in it a name",
    ),
    "a database where nothing can be written": (
        '"callboard.db"',
        '"/proc/callboard.db"',
        "callboard: /proc/callboard.db cannot be used",
    ),
}


QUICK_ELSEWHERE = {
    "a wrong type",
    "an unknown agent in a route",
    "an unknown colleague",
    "a script that is no TOML",
    "a script that is no text",
}
"""The loader says these; its own tests read them without a start of the program."""


def is_refusal(done: Finished) -> bool:
    return done.code == 1 and done.out == "" and "Traceback" not in done.err


@pytest.mark.parametrize(
    "mistake",
    [
        pytest.param(name, marks=[pytest.mark.deep] * (name in QUICK_ELSEWHERE))
        for name in MISTAKES
    ],
)
def test_a_wrong_setting_is_explained(mistake: str, tmp_path: Path) -> None:
    right, wrong, complaint = MISTAKES[mistake]
    path = write_settings(tmp_path)
    text = path.read_text(encoding="utf-8")
    assert right in text
    path.write_text(text.replace(right, wrong, 1), encoding="utf-8")
    (tmp_path / "notes.txt").write_text("dear diary", encoding="utf-8")
    (tmp_path / "picture").write_bytes(b"\x89PNG\xff\xfe")
    done = run_here("serve", "--config", "callboard.toml", folder=tmp_path)
    assert is_refusal(done), done
    assert complaint in done.err


@pytest.mark.parametrize("command", ["serve", "chat"])
def test_settings_that_cannot_be_read_are_named(command: str, tmp_path: Path) -> None:
    for name, why in (("none.toml", "No such file"), (".", "Is a directory")):
        done = run_here(command, "--config", name, folder=tmp_path)
        assert is_refusal(done), done
        assert done.err.startswith(f"{name}: cannot be read: {why}")


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_chat_needs_a_keyboard_and_a_screen(closed: str, tmp_path: Path) -> None:
    write_settings(tmp_path)
    command = f"{sys.executable} -m connectors chat -c callboard.toml {closed}"
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=tmp_path,
        input="hello\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 2
    assert "chat needs standard input and standard output" in done.stderr


def test_serve_without_settings_says_where_they_may_be(tmp_path: Path) -> None:
    done = run("serve", folder=tmp_path)
    assert done.code == 2
    assert "there are no settings: give --config FILE" in done.err


def test_serve_needs_something_to_serve(tmp_path: Path) -> None:
    path = write_settings(tmp_path)
    text = path.read_text(encoding="utf-8")
    only = text.replace("[connectors.http]", "[connectors.terminal]")
    path.write_text(
        only.replace('"http"', '"terminal"').replace("port = 0", ""), encoding="utf-8"
    )
    done = run_here("serve", folder=tmp_path)
    assert done.code == 2
    assert "there is nothing to serve" in done.err


def test_an_address_that_is_taken_ends_the_start(tmp_path: Path) -> None:
    with served(tmp_path / "first") as server:
        host, port = server.address
        path = write_settings(tmp_path / "second")
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("port = 0", f"port = {port}"), encoding="utf-8")
        done = run("serve", folder=path.parent)
    assert is_refusal(done), done
    told, refusal = done.err.splitlines(keepends=True)
    assert "a new database was made" in told
    assert refusal == (
        f"callboard: connectors.http: cannot listen on {host}:{port}: address already"
        " in use; end the other program or set another host or port\n"
    )


def test_one_database_serves_one_process(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        done = run_here("serve", folder=tmp_path)
        assert is_refusal(done), done
        assert done.err == (
            f"callboard: {tmp_path}/callboard.db is in use by another callboard"
            f" (process {server.process.pid}); stop it, or give this one a database of"
            " its own\n"
        )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    path = write_settings(tmp_path / "here")
    path.parent.chmod(0o500)
    done = run("serve", folder=path.parent)
    path.parent.chmod(0o700)
    shutil.rmtree(path.parent)
    assert is_refusal(done), done
    assert "callboard.db cannot be used" in done.err
