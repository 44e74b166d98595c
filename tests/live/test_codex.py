"""Proves that Codex answers as an agent: in the sandbox, with sessions it goes on with.

The program is Codex 0.171.0 from npm; what it asks is aimock 1.43.0, which speaks
OpenAI's Responses API, so that no key is needed. The settings are those of
`config/codex.toml`, with an address added.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.fakes.models.aimock import serving
from tests.processes.running import ROOT, Finished, run

pytestmark = pytest.mark.live

PACKAGES = ROOT / ".live" / "codex" / "node_modules" / "@openai"
KEY = "sk-of-nobody-at-all"
COLOUR = "aquamarine"
FIRST, SECOND = (1_000, 500), (70, 7)
"""Tokens read and written by each answer."""


def counted(tokens: tuple[int, int]) -> dict[str, int]:
    return {"input_tokens": tokens[0], "output_tokens": tokens[1]}


CALL = {"name": "exec_command", "arguments": '{"cmd":"echo deep sea | tee note"}'}
FIXTURES = [
    {"match": {"toolResultContains": "deep sea"}, "response": {"content": "Written."}},
    {"match": {"userMessage": "write it"}, "response": {"toolCalls": [CALL]}},
    {
        "match": {"userMessage": "what did I say"},
        "response": {"content": "A colour.", "usage": counted(SECOND)},
    },
    {
        "match": {"userMessage": f"remember {COLOUR}"},
        "response": {"content": "Noted.", "usage": counted(FIRST)},
    },
]

# Not OpenAI's own provider: Codex asks that over a WebSocket, where aimock is slow.
PROVIDER = (
    """"-c", 'model_provider="stub"', "-c", 'model_providers.stub={{ name="stub", """
    """base_url="{url}/v1", env_key="CODEX_API_KEY", wire_api="responses" }}'"""
)


def program() -> Path:
    """Find the program in the package of this system."""
    found = list(PACKAGES.glob("codex-*/vendor/*/bin/codex"))
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
    settings = (ROOT / "config/codex.toml").read_text(encoding="utf-8")
    for there, instead in (
        ('command = ["codex"]', f'command = ["{program()}"]'),
        ('# readable = ["/opt/codex"]', f'readable = ["{PACKAGES}"]'),
        ('["exec",', f"""["exec", {PROVIDER.format(url=url)},"""),
    ):
        assert there in settings
        settings = settings.replace(there, instead)
    (tmp_path / "callboard.toml").write_text(settings, encoding="utf-8")
    return tmp_path


def callboard(folder: Path, *words: str, typed: str = "") -> Finished:
    done = run(*words, folder=folder, typed=typed, OPENAI_API_KEY=KEY)
    assert "Traceback" not in done.said
    assert KEY not in done.said
    return done


def test_it_answers_and_goes_on_with_its_session_and_each_answer_is_counted_once(
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
    told = (anna["input_tokens"], anna["output_tokens"])
    assert told == tuple(map(sum, zip(FIRST, SECOND, strict=True)))


def test_it_runs_commands_in_the_folder_of_its_conversation(folder: Path) -> None:
    done = callboard(folder, "chat", typed="write it down\n")
    assert done.code == 0, done.err
    assert "anna> Written." in done.out
    (note,) = folder.glob("**/cli/anna/*/note")
    assert note.read_text() == "deep sea\n"


def test_the_doctor_runs_it_once(folder: Path) -> None:
    done = callboard(folder, "doctor", "--all")
    assert "models.main: starts in the sandbox, and says 'codex-cli" in done.out
