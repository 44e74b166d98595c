"""Proves that the protocol's own reference servers work, through an agent's turn.

The settings are a person's, the sandbox is real, and so are the servers: of the npm
packages `@modelcontextprotocol/server-everything` and `server-filesystem`.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.processes.running import ROOT, run

pytestmark = pytest.mark.live

PACKAGES = ROOT / ".live" / "mcp"
EVERYTHING = PACKAGES / "node_modules/@modelcontextprotocol/server-everything/dist"
FILESYSTEM = PACKAGES / "node_modules/@modelcontextprotocol/server-filesystem/dist"

NODE = shutil.which("node") or "node is not installed"

SETTINGS = """
default_agent = "anna"
[store]
path = "state/callboard.db"
[models.scripted]
kind = "scripted"
script = "script.toml"
[connectors.terminal]
kind = "terminal"
[agents.anna]
prompt = "You are Anna."
autonomy = "full"
tools = ["mcp:everything", "mcp:files/*_file", "mcp:files/list_*"]
"""

SCRIPT = r"""
[default]
reply = "what?"

[[rule]]
on_tool = "*"
pattern = '(?s)\A(?P<all>.*)\Z'
reply = "<{all}>"

[[rule]]
pattern = 'call (?P<tool>\S+)$'
tool = [{ name = "TOOL" }]
"""

BY_STDIO = f"""
[mcpServers.everything]
command = "node"
args = ["{EVERYTHING / "index.js"}", "stdio"]
readable = ["{PACKAGES}"]
[mcpServers.files]
command = "node"
args = ["{FILESYSTEM / "index.js"}", "shared"]
cwd = "."
readable = ["{PACKAGES}"]
effects = {{ "read_*" = "read" }}
"""


def rule(words: str, name: str, **arguments: str) -> str:
    given = ", ".join(f"{key} = '{value}'" for key, value in arguments.items())
    call = f'{{ name = "{name}", arguments = {{ {given} }} }}'
    return f"[[rule]]\npattern = '{words}'\ntool = [{call}]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    shared = home / "shared"
    shared.mkdir(parents=True)
    (shared / "note.txt").write_text("the cat sat")
    (tmp_path / "secret.txt").write_text("do not read")
    return home


def talk(folder: Path, servers: str, rules: str, *lines: str) -> str:
    script = SCRIPT.partition("[[rule]]\npattern = 'call")[0] + rules
    (folder.parent / "script.toml").write_text(script)
    (folder.parent / "c.toml").write_text(SETTINGS + servers)
    config = str(folder.parent / "c.toml")
    typed = "".join(f"{line}\n" for line in lines)
    done = run("chat", "--config", config, folder=folder.parent, typed=typed)
    assert done.code == 0, done.err
    assert "Traceback" not in done.err
    return done.out


def test_everything_over_standard_input_and_output(folder: Path) -> None:
    rules = (
        rule("echo (?P<w>.+)", "everything__echo", message="{w}")
        + rule("picture", "everything__get-tiny-image")
        + rule("weather", "everything__get-structured-content", location="New York")
        + rule("variables", "everything__get-env")
    )
    said = talk(
        folder,
        only_everything(),
        rules,
        "echo hello",
        "picture",
        "weather",
        "variables",
    )
    assert "anna> <Echo: hello>" in said
    assert "image" in said
    assert said.count("temperature") == 1
    assert "CALLBOARD" not in said


def only_everything() -> str:
    return BY_STDIO.replace("[mcpServers.files]", "[mcpServers.files]\ndisabled = true")


def test_the_filesystem_server_reaches_its_folder_and_no_other(folder: Path) -> None:
    servers = BY_STDIO.replace('cwd = "."', f'cwd = "{folder}"').replace(
        '"shared"]', f'"{folder / "shared"}"]'
    )
    note, secret = folder / "shared" / "note.txt", folder.parent / "secret.txt"
    rules = (
        rule("read note", "files__read_text_file", path=str(note))
        + rule("read secret", "files__read_text_file", path=str(secret))
        + rule("write (?P<w>.+)", "files__write_file", path=str(note), content="{w}")
    )
    said = talk(folder, servers, rules, "read note", "read secret", "write dogs bark")
    assert said.count("the cat sat") == 1
    assert "Access denied" in said
    assert "do not read" not in said
    assert note.read_text() == "dogs bark"


@contextmanager
def everything_at_an_address() -> Generator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [NODE, str(EVERYTHING / "index.js"), "streamableHttp"],
        env={"PATH": os.environ["PATH"], "PORT": str(port)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        while "listening" not in (line := process.stderr.readline()):
            assert line, "it ended"
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.communicate()


def test_everything_over_streamable_http(folder: Path) -> None:
    rules = rule("echo (?P<w>.+)", "everything__echo", message="{w}") + rule(
        "add", "everything__get-tiny-image"
    )
    with everything_at_an_address() as url:
        servers = f'[mcpServers.everything]\nurl = "{url}"\n'
        servers += '[mcpServers.files]\ncommand = "none"\ndisabled = true\n'
        said = talk(folder, servers, rules, "echo over http", "add")
    assert "anna> <Echo: over http>" in said
    assert "image" in said


def test_a_server_that_is_not_there_is_told_and_hurts_nobody(folder: Path) -> None:
    servers = '[mcpServers.everything]\nurl = "http://127.0.0.1:9/mcp"\n'
    servers += '[mcpServers.files]\ncommand = "/no/such/program"\n'
    assert "anna> what?" in talk(folder, servers, "", "hello")


def test_the_tools_are_listed_with_effect_and_source(folder: Path) -> None:
    talk(folder, BY_STDIO.replace('cwd = "."', f'cwd = "{folder}"'), "", "hello")
    config = str(folder.parent / "c.toml")
    done = run("tools", "list", "--config", config, folder=folder.parent)
    lines = {line.split()[1]: line.split() for line in done.out.splitlines()[1:]}
    assert lines["everything__echo"][2:4] == ["run", "mcp:everything"]
    assert lines["files__read_text_file"][2:4] == ["read", "mcp:files"]
    assert "files__move_file" in lines
    assert "files__directory_tree" not in lines
