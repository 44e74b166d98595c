"""Proves that Claude Code answers as an agent: in the sandbox, with skills and servers.

The program is Claude Code 2.1.197 from npm; what it asks is aimock 1.43.0, which speaks
Anthropic's format, so that no key is needed. The settings are those of
`config/claude_code.toml`, with addresses added.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.fakes.models.aimock import serving
from tests.processes.running import ROOT, Finished, run

pytestmark = pytest.mark.live

PACKAGES = ROOT / ".live" / "claude" / "node_modules" / "@anthropic-ai"
TOOLS = ROOT / ".live" / "mcp"
EVERYTHING = TOOLS / "node_modules/@modelcontextprotocol/server-everything/dist"
KEY = "sk-ant-of-nobody-at-all"
COLOUR = "aquamarine"

CALL = {"name": "mcp__everything__echo", "arguments": '{"message":"deep sea"}'}
FIXTURES = [
    {
        "match": {"toolResultContains": "Echo: deep sea"},
        "response": {"content": "It came back."},
    },
    {"match": {"userMessage": "call the echo"}, "response": {"toolCalls": [CALL]}},
    {"match": {"userMessage": "what did I say"}, "response": {"content": "A colour."}},
    {
        "match": {"userMessage": f"remember {COLOUR}"},
        "response": {
            "content": "Noted.",
            "usage": {"input_tokens": 1_000, "output_tokens": 500},
        },
    },
]

SETTINGS = """
default_agent = "anna"

[models.main]
kind = "cli"
command = ["{program}"]
variables = {{ IS_SANDBOX = "1", ANTHROPIC_BASE_URL = "{url}" }}
secrets = {{ ANTHROPIC_API_KEY = {{ env = "ANTHROPIC_API_KEY" }} }}
readable = ["{packages}", "{tools}"]

[mcpServers.everything]
command = "node"
args = ["{everything}", "stdio"]
readable = ["{tools}"]

[skills]
folders = ["skills"]

[connectors.terminal]
kind = "terminal"

[agents.anna]
model = "main"
prompt = "You are Anna."
skills = ["pdf"]
tools = ["mcp:everything"]
"""


def program() -> Path:
    """Find the program in the package of this system."""
    found = [each for each in PACKAGES.glob("claude-code-*/claude") if each.is_file()]
    assert found, "run tests/live/setup.sh"
    return found[0]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run the model's server; gives its address."""
    folder = tmp_path_factory.mktemp("aimock")
    with serving(FIXTURES, folder, KEY) as address:
        yield address


@pytest.fixture
def folder(url: str, tmp_path: Path) -> Path:
    skill = tmp_path / "skills" / "pdf"
    skill.mkdir(parents=True)
    head = "---\nname: pdf\ndescription: Fills in forms.\n---\nStep 1."
    (skill / "SKILL.md").write_text(head)
    (tmp_path / "callboard.toml").write_text(
        SETTINGS.format(
            program=program(),
            url=url,
            packages=PACKAGES,
            tools=TOOLS,
            everything=EVERYTHING / "index.js",
        )
    )
    return tmp_path


def callboard(folder: Path, *words: str, typed: str = "") -> Finished:
    done = run(*words, folder=folder, typed=typed, ANTHROPIC_API_KEY=KEY)
    assert "Traceback" not in done.said
    assert KEY not in done.said
    return done


def test_it_answers_and_goes_on_with_its_session_and_its_cost_is_counted(
    folder: Path,
) -> None:
    typed = f"remember {COLOUR}\nwhat did I say\n"
    done = callboard(folder, "chat", typed=typed)
    assert done.code == 0, done.err
    assert "anna> Noted." in done.out
    assert "anna> A colour." in done.out
    usage = callboard(folder, "usage", "--json")
    (anna, *_) = msgspec.json.decode(usage.out)
    assert anna["runs"] == 2
    assert anna["cost"] > 0


def test_it_calls_the_tools_of_a_server(folder: Path) -> None:
    done = callboard(folder, "chat", typed="call the echo\n")
    assert done.code == 0, done.err
    assert "anna> It came back." in done.out


def test_the_doctor_runs_it_once(folder: Path) -> None:
    done = callboard(folder, "doctor", "--all")
    assert "models.main: starts in the sandbox, and says" in done.out
