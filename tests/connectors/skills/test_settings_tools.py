"""Proves that settings of servers and skills are checked, each in its place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from connectors.config.models import CliModelConfig
from connectors.settings.load import load_app
from runtime.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

    from connectors.config.app import AppConfig
    from runtime.config.loader import Settings

pytest.importorskip("mcp", reason="the extra mcp is not installed")

HEAD = """
[models.scripted]
kind = "scripted"
script = "s.toml"
[connectors.http]
kind = "http"
"""


def load(
    folder: Path, text: str, top: str = "", agent: str = ""
) -> Settings[AppConfig]:
    (folder / "s.toml").write_text("")
    agents = f'[agents.anna]\nprompt = "x"\n{agent}\n'
    (folder / "c.toml").write_text(top + HEAD + agents + text)
    return load_app(folder / "c.toml", {"TOKEN": "secret-token-1", "OTHER": "x" * 9})


def refusals(folder: Path, text: str, top: str = "", agent: str = "") -> str:
    with pytest.raises(SettingsError) as caught:
        load(folder, text, top, agent)
    return "\n".join(f"{each} {each.hint}" for each in caught.value.problems)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[mcpServers.a]\n", "command or url, one of the two"),
        ('[mcpServers.a]\ncommand="x"\nurl="http://x"\n', "one of the two"),
        ('[mcpServers.a]\nurl="ftp://x"\n', "no http or https address"),
        ('[mcpServers.a]\nurl="http://a:b@x"\n', "in the open"),
        ('[mcpServers.a]\nurl="http://x"\nargs=["a"]\n', "has none"),
        ('[mcpServers.a]\ncommand="x"\nheaders={A="b"}\n', "has none"),
        ('[mcpServers.a]\ncommand="x"\nprefix="a__b"\n', "cannot begin a name"),
        ('[mcpServers.a]\ncomand="x"\n', "did you mean 'command'?"),
        ('[mcpServers.a]\ncommand="x"\nenv={"A-B"="c"}\n', "environment variable"),
        ('[mcpServers.a]\ncommand="x"\nenv={A=3}\n', "must be a text"),
        ('[mcpServers.a]\ncommand="x"\nenv={A={env="NONE"}}\n', "NONE is not set"),
        (
            '[mcpServers.a]\ncommand="x"\nenv={A={env="OTHER",x="y"}}\n',
            "unknown key 'x'",
        ),
        ('[mcpServers."a b"]\ncommand="x"\n', "is not allowed"),
        (
            '[mcpServers."a.b"]\ncommand="x"\n[mcpServers.a-b]\ncommand="x"\n',
            "called as those of",
        ),
        ('[skills]\nfolders=["nowhere"]\n', "there is no folder"),
        # No system has such a name, so that nobody may look.
        (f'[skills]\nfolders=["{"x" * 300}"]\n', "there is no folder"),
    ],
)
def test_what_does_not_go_together_is_refused(
    text: str, says: str, tmp_path: Path
) -> None:
    assert says in refusals(tmp_path, text)


def test_agents_may_list_only_servers_and_skills_there_are(tmp_path: Path) -> None:
    server = '[mcpServers.files]\ncommand="x"\n'
    text = refusals(tmp_path, server, agent='tools=["mcp:file/read_*"]\nskills=["pdf"]')
    assert "there is no server 'file'" in text
    assert "did you mean 'files'?" in text
    assert "agents.anna.skills: there are no skills" in text
    load(tmp_path, server, agent='tools=["mcp:files/read_*"]')


def test_a_secret_in_the_open_is_warned_of(tmp_path: Path) -> None:
    text = '[mcpServers.a]\nurl="https://x"\nheaders={Authorization="Bearer x"}\n'
    (warning,) = load(tmp_path, text).warnings
    assert "looks like a secret" in str(warning)


def test_secrets_are_fetched_and_may_follow_a_text(tmp_path: Path) -> None:
    given = '{ before = "Bearer ", env = "TOKEN" }'
    text = f'[mcpServers.a]\nurl="https://x"\nheaders={{Authorization={given}}}\n'
    settings = load(tmp_path, text)
    header = settings.value.mcp_servers["a"].headers["Authorization"]
    assert header.reveal() == "Bearer secret-token-1"
    assert "secret" not in f"{header!r} {header}"
    assert [each.reveal() for each in settings.secrets] == ["secret-token-1"]


def test_a_file_of_other_programs_is_taken_as_it_is(tmp_path: Path) -> None:
    servers = {
        "GitHub": {
            "type": "http",
            "url": "https://x/mcp",
            "headers": {"Authorization": "Bearer ${TOKEN}"},
        },
        "files": {"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    top = 'mcp_servers_file = "mcp.json"\n'
    found = load(
        tmp_path, '[mcpServers.files]\nargs = ["mine"]\n', top
    ).value.mcp_servers
    assert found["GitHub"].headers["Authorization"].reveal() == "Bearer secret-token-1"
    assert (found["files"].command, found["files"].args) == ("npx", ("mine",))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "mcp.json:1:2: not valid JSON"),
        ("[]", "has no table 'mcpServers'"),
        ('{"tools": {"mcpServers": {}}}', "below 'tools': put that table alone"),
        ('{"mcpServers": {}, "x": 1}', "unknown key 'x'"),
        ('{"mcpServers": {"a": {"type": "sse", "url": "http://x"}}}', "type 'sse'"),
        ('{"mcpServers": {"a": {"comand": "x"}}}', "did you mean 'command'?"),
        ('{"mcpServers": {"a": 3}}', "must be a table"),
        ('{"mcpServers": {"a": {"command": "x", "env": {"A": "${NONE}"}}}}', "not set"),
        ("[" * 100_000, "no JSON file"),
    ],
)
def test_a_wrong_file_says_where_and_why(
    content: str, says: str, tmp_path: Path
) -> None:
    (tmp_path / "mcp.json").write_text(content)
    text = refusals(tmp_path, "", 'mcp_servers_file = "mcp.json"\n')
    assert says in text
    assert "mcp.json" in text


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert "cannot be read" in refusals(tmp_path, "", 'mcp_servers_file = "no.json"\n')


def test_wrong_skills_and_unread_servers_are_warnings(tmp_path: Path) -> None:
    for name, head in (("pdf", "description: x\n"), ("bad", "")):
        path = tmp_path / "skills" / name
        path.mkdir(parents=True)
        (path / "SKILL.md").write_text(f"---\nname: {name}\n{head}---\nx")
    server = {"mcpServers": {"a": {"command": "x"}}}
    (tmp_path / "skills" / "pdf" / "mcp.json").write_text(json.dumps(server))
    text = '[skills]\nfolders = ["skills"]\n'
    told = [str(each) for each in load(tmp_path, text, agent='skills=["*"]').warnings]
    assert len(told) == 2
    assert any("'description' is missing" in each for each in told)
    assert any("brings servers of tools" in each for each in told)
    wrong = refusals(tmp_path, text, agent='skills=["pfd"]')
    assert "no skill fits 'pfd'" in wrong
    allowed = load(tmp_path, text + 'servers = ["pdf"]\n')
    assert len(allowed.warnings) == 1


def test_what_is_doubtful_at_a_skill_s_servers_is_told(tmp_path: Path) -> None:
    path = tmp_path / "skills" / "pdf"
    path.mkdir(parents=True)
    (path / "SKILL.md").write_text("---\nname: pdf\ndescription: x\n---\nx")
    server = {"mcpServers": {"a": {"command": "x", "restart_longest": 5}}}
    (path / "mcp.json").write_text(json.dumps(server))
    found = load(tmp_path, '[skills]\nfolders = ["skills"]\nservers = ["pdf"]\n')
    (told,) = map(str, found.warnings)
    assert "mcpServers.a.restart_longest has no effect any more" in told
    assert "mcp.json" in told


def test_secrets_of_a_skill_s_servers_are_as_private_as_those_of_the_settings(
    tmp_path: Path,
) -> None:
    path = tmp_path / "skills" / "pdf"
    path.mkdir(parents=True)
    (path / "SKILL.md").write_text("---\nname: pdf\ndescription: x\n---\nx")
    (tmp_path / "key").write_text("secret-in-a-file\n")
    env = {"A": "${TOKEN}", "B": {"file": str(tmp_path / "key")}}
    server = {"mcpServers": {"a": {"command": "x", "env": env}}}
    (path / "mcp.json").write_text(json.dumps(server))
    text = '[skills]\nfolders = ["skills"]\n'
    without = load(tmp_path, text)
    assert without.secrets == ()  # it is not started, so it is given none
    found = load(tmp_path, text + 'servers = ["pdf"]\n')
    secrets = {each.reveal() for each in found.secrets}
    assert secrets == {"secret-token-1", "secret-in-a-file"}
    assert found.secret_files == (tmp_path / "key",)


def test_a_file_in_a_command_is_the_one_beside_the_settings(tmp_path: Path) -> None:
    (tmp_path / "srv.py").write_text("")
    (tmp_path / "run").mkdir()
    text = '[mcpServers.a]\ncommand="python3"\nargs=["srv.py", "run", "-c", "x"]\n'
    found = load(tmp_path, text).value.mcp_servers["a"]
    assert found.command == "python3"
    assert found.args == (str(tmp_path / "srv.py"), "run", "-c", "x")
    text = '[hooks.a]\nevents=["turn_finished"]\ncommand=["python3", "srv.py"]\n'
    hook = load(tmp_path, text).value.hooks["a"]
    assert hook.command == ("python3", str(tmp_path / "srv.py"))
    text = '[models.b]\nkind="cli"\ncommand=["./srv.py", "run"]\n'
    model = load(tmp_path, text).value.models["b"]
    assert isinstance(model, CliModelConfig)
    assert model.command == (str(tmp_path / "srv.py"), "run")


def test_a_folder_that_a_server_cannot_read_is_warned_of(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    text = f'[mcpServers.a]\ncommand="npx"\nargs=["x", "{folder}", "/usr/share"]\n'
    warnings = load(tmp_path, text).warnings
    assert [each.text for each in warnings] == [
        f"mcpServers.a.args[1]: {folder} is not readable in the sandbox"
    ]
    assert f'readable = ["{folder}"]' in (warnings[0].hint or "")
    assert not load(tmp_path, f'{text}writable=["{tmp_path}"]\n').warnings
