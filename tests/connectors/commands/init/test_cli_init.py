"""Proves that `callboard init` writes files that work, or nothing at all."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from connectors.commands.init.main import command
from connectors.settings.load import load_app
from tests.fakes.sites.threaded_site import HANGS, open_little_site

ROOT = Path(__file__).parents[4]
KEY = "sk-gold-and-round-1234"
NOBODY = "http://127.0.0.1:9"
"""Where no Ollama server is."""

KEYS = (
    *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"),
    *("MATRIX_TOKEN", "CALLBOARD_CONFIG", "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"),
)


def init(
    folder: Path, *arguments: str, words: str | None = None, **environment: str
) -> Result:
    """Run the command; with words it asks."""
    asks = "--yes" if words is None else "--ask"
    given = ["--folder", str(folder), asks, *arguments]
    if "--ollama" not in arguments:
        given += ["--ollama", NOBODY]
    return CliRunner(env={**dict.fromkeys(KEYS), **environment}).invoke(
        command, given, input=words, prog_name="callboard init"
    )


def callboard(
    folder: Path, *arguments: str, words: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the program as a person would, in a process of its own."""
    kept = {name: value for name, value in os.environ.items() if name not in KEYS}
    return subprocess.run(
        [sys.executable, "-m", "connectors", *arguments],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT)},
        input=words,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_without_a_terminal_a_key_and_a_network_all_is_ready(tmp_path: Path) -> None:
    done = callboard(tmp_path, "init", "--ollama", NOBODY)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("No model was found here: no key that can be used")
    assert "follows a small script, which is no model" in done.stdout
    then = "Then: callboard doctor\nThen: callboard serve\n"
    assert done.stdout.endswith(f"Next: callboard chat\n{then}")
    checked = callboard(tmp_path, "config", "check")
    assert checked.stdout == "callboard.toml: ok (1 agent, 1 model, 2 connectors)\n"
    assert checked.stderr == ""
    said = callboard(tmp_path, "chat", words="hello, I am Sam\nwhat is 12 * 7\n")
    assert "anna> Hello Sam, nice to meet you!" in said.stdout
    assert "anna> 12 * 7 = 84" in said.stdout


def test_what_is_there_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "callboard.toml").write_text("mine")
    done = init(tmp_path)
    assert done.exit_code == 1
    assert "stays as it is" in done.stderr
    assert (tmp_path / "callboard.toml").read_text() == "mine"
    assert everything(tmp_path) == {"callboard.toml"}


def test_force_writes_the_settings_and_leaves_what_is_beside_them(
    tmp_path: Path,
) -> None:
    assert init(tmp_path).exit_code == 0
    soul = tmp_path / "agents" / "anna" / "SOUL.md"
    soul.write_text("Silent.")
    (tmp_path / "callboard.toml").write_text("mine")
    done = init(tmp_path, "--force", "--template", "host", "--agent", "anna")
    assert done.exit_code == 0, done.output
    assert "default_agent" in (tmp_path / "callboard.toml").read_text()
    assert "Left as it was, because it was there: agents/anna." in done.output
    assert soul.read_text() == "Silent."
    assert not [name for name in everything(tmp_path) if ".callboard-init" in name]


def test_a_link_that_leads_nowhere_counts_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "callboard.toml").symlink_to("gone.toml")
    assert init(tmp_path).exit_code == 1
    assert everything(tmp_path) == {"callboard.toml"}


def test_a_place_that_cannot_be_is_refused_before_anything_is_asked(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("mine")
    done = init(tmp_path / "file" / "deep" / "er", words="")
    assert done.exit_code == 1
    assert "file is no folder that you may write to" in done.stderr
    assert everything(tmp_path) == {"file"}
    assert init(tmp_path / "new" / "place").exit_code == 0
    assert (tmp_path / "new" / "place" / "callboard.toml").is_file()


def test_answers_are_taken_and_there_are_four_questions(tmp_path: Path) -> None:
    done = init(tmp_path, words="embedded\nanalyst\nzoe\nterminal\n")
    assert done.exit_code == 0, done.output
    assert done.output.count("]: ") == 4
    text = (tmp_path / "callboard.toml").read_text()
    assert 'persona = "agents/zoe"' in text
    assert "connectors.http" not in text
    identity = (tmp_path / "agents" / "zoe" / "IDENTITY.md").read_text()
    assert identity.startswith("# Zoe\n\nYou are Zoe.")
    assert f"callboard doctor --config {tmp_path}" in done.output


def test_a_wrong_answer_is_asked_again(tmp_path: Path) -> None:
    words = "gpt\nembedded\nwizard\nhost\nUpper Case\nmia\nfax\n,\nhttp\n"
    done = init(tmp_path, words=words)
    assert done.exit_code == 0, done.output
    for complaint in (
        "there is no 'gpt'; known: anthropic, openai, google, openrouter",
        "there is no 'wizard'; known: assistant, analyst, host",
        "a name is a letter, then up to 31 of",
        "there is no 'fax'; known: terminal, http",
        "name at least one of: terminal, http",
    ):
        assert f"Error: {complaint}" in done.output


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--model", "gpt"], "--model: there is no 'gpt'"),
        (["--agent", "A b"], "--agent: a name is a letter"),
        (["--template", "x"], "--template: there is no 'x'"),
        (["--people", ""], "--people: name at least one"),
        (["--model", "openai"], "openai asks for a key: set OPENAI_API_KEY"),
        (["--model", "openai", "--key-env", "NOT_SET"], "NOT_SET is not set"),
        (["--people", "matrix", "--matrix-id", "anna"], "--matrix-id: a Matrix id"),
        (
            ["--model", "openai", "--base-url", "ftp://x"],
            "--base-url: is no http or https address",
        ),
    ],
)
def test_a_wrong_flag_writes_nothing(
    tmp_path: Path, flags: list[str], complaint: str
) -> None:
    done = init(tmp_path, *flags)
    assert done.exit_code == 2
    assert complaint in done.stderr.replace("Invalid value for ", "")
    assert not everything(tmp_path)


@pytest.mark.parametrize(
    "flags", [["--agent", "A b"], ["--template", "x"], ["--people", "fax"]]
)
def test_a_wrong_flag_is_refused_before_a_model_is_asked(
    tmp_path: Path, flags: list[str]
) -> None:
    model = ("--model", "openai/m1", "--base-url", NOBODY)
    done = init(tmp_path, *model, *flags, OPENAI_API_KEY=KEY)
    assert (done.exit_code, done.stdout) == (2, "")


def test_a_key_in_the_environment_is_named_and_never_shown(tmp_path: Path) -> None:
    done = init(tmp_path, "--no-test", OPENAI_API_KEY=KEY)
    assert done.exit_code == 0, done.output
    text = (tmp_path / "callboard.toml").read_text()
    assert 'api_key = { env = "OPENAI_API_KEY" }' in text
    assert KEY not in text + done.output
    done = init(tmp_path, "--no-test", "--force", words="\n\n\n\n", OPENAI_API_KEY=KEY)
    assert "openai     key in OPENAI_API_KEY" in done.output
    assert KEY not in done.output


def test_a_placeholder_is_no_key(tmp_path: Path) -> None:
    done = init(tmp_path, words="\n\n\n\n", OPENAI_API_KEY="your-api-key")
    assert done.exit_code == 0
    assert "OPENAI_API_KEY holds a placeholder" in done.output
    assert 'kind = "scripted"' in (tmp_path / "callboard.toml").read_text()


def test_a_typed_key_goes_into_a_file_of_its_own(tmp_path: Path) -> None:
    done = init(tmp_path, "--no-test", words=f"openai\nshort\n{KEY}\n\n\n\n")
    assert done.exit_code == 0, done.output
    file = tmp_path / "secrets" / "openai_api_key"
    assert file.read_text() == f"{KEY}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    text = (tmp_path / "callboard.toml").read_text()
    assert 'api_key = { file = "secrets/openai_api_key" }' in text
    assert KEY not in text + done.output
    assert "shorter than 8 characters" in done.output
    assert callboard(tmp_path, "config", "check").stderr == ""


def test_a_file_with_a_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY)
    (tmp_path / "key").chmod(0o600)
    file = str(tmp_path / "key")
    done = init(
        tmp_path, "--no-test", "--model", "anthropic/claude-x", "--key-file", file
    )
    assert done.exit_code == 0, done.output
    text = (tmp_path / "callboard.toml").read_text()
    assert 'model = "claude-x"' in text
    assert 'api_key = { file = "key" }' in text
    assert callboard(tmp_path, "config", "check").returncode == 0


def test_the_models_of_a_local_server_are_found_and_one_is_tried(
    tmp_path: Path,
) -> None:
    tags = {"models": [{"name": "nomic-embed-text"}, {"name": "tiny:1b"}]}
    said = b'{"message":{"content":"ready"},"done":true,"done_reason":"stop"}\n'
    answers = {
        "GET /api/tags": (200, json.dumps(tags).encode()),
        "POST /api/chat": (200, said),
    }
    with open_little_site(answers) as site:
        site.media_type = "application/x-ndjson"
        done = init(tmp_path, "--ollama", site.url)
    assert done.exit_code == 0, done.output
    assert "tiny:1b answered in " in done.output
    assert site.asked == ["GET /api/tags", "POST /api/chat"]
    text = (tmp_path / "callboard.toml").read_text()
    assert f'model = "tiny:1b"\nbase_url = "{site.url}"\n' in text


def test_a_key_that_was_found_goes_to_its_own_provider_alone(tmp_path: Path) -> None:
    with open_little_site({}) as site:
        flags = ("--model", "openai/tiny", "--base-url", f"{site.url}/v1")
        init(tmp_path, *flags, OPENAI_API_KEY=KEY)
        assert site.asked
        assert KEY not in str(site.headers)
        init(tmp_path, *flags, "--key-env", "OPENAI_API_KEY", OPENAI_API_KEY=KEY)
        assert site.headers[-1]["authorization"] == f"Bearer {KEY}"


def test_a_model_that_refuses_tools_gets_none(tmp_path: Path) -> None:
    said = b'{"message":{"content":"ready"},"done":true,"done_reason":"stop"}\n'
    answers = {
        "POST /api/chat": (200, said),
        "POST /api/chat +tools": (400, b'{"error":"tiny does not support tools"}'),
    }
    with open_little_site(answers) as site:
        site.media_type = "application/x-ndjson"
        done = init(tmp_path, "--model", "ollama/tiny", "--ollama", site.url)
    assert done.exit_code == 0, done.output
    assert "but takes no tools." in done.output
    assert "takes_tools = false" in (tmp_path / "callboard.toml").read_text()


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "does not let us in: the key in OPENAI_API_KEY is wrong"),
        (402, "has no credit left"),
        (404, "does not take 'gpt-4.1-mini'"),
        (429, "too many calls"),
        (503, "has too much to do"),
    ],
)
def test_a_model_that_fails_is_explained_and_nothing_is_written(
    tmp_path: Path, status: int, words: str
) -> None:
    with open_little_site({"POST /v1/chat/completions": (status, b"{}")}) as site:
        given = ("--model", "openai", "--key-env", "OPENAI_API_KEY")
        url = ("--base-url", f"{site.url}/v1")
        done = init(tmp_path, *given, *url, OPENAI_API_KEY=KEY)
    assert done.exit_code == 1
    assert words in done.stderr
    assert "callboard init --model embedded" in done.stderr
    assert KEY not in done.output
    assert not everything(tmp_path)


def test_who_is_asked_is_offered_the_embedded_model(tmp_path: Path) -> None:
    flags = ("--model", "openai", "--base-url", f"{NOBODY}/v1")
    done = init(tmp_path, *flags, words="\n\n\n\n")
    assert done.exit_code == 0, done.output
    assert "That did not work: nobody answers at 127.0.0.1:9" in done.output
    assert 'kind = "scripted"' in (tmp_path / "callboard.toml").read_text()


def test_matrix_is_written_as_comments_until_it_is_whole(tmp_path: Path) -> None:
    done = init(tmp_path, "--people", "terminal,matrix")
    assert done.exit_code == 0, done.output
    assert "matrix waits as comments" in done.output
    assert (
        "# [connectors.matrix.accounts.anna]"
        in (tmp_path / "callboard.toml").read_text()
    )
    mine = ("--people", "matrix", "--matrix-id", "@desk:hub.test", "--force")
    done = init(tmp_path, *mine)
    assert "MATRIX_TOKEN is not set" in done.output
    done = init(tmp_path, *mine, "--agent", "zoe", MATRIX_TOKEN=KEY)
    text = (tmp_path / "callboard.toml").read_text()
    assert "[connectors.matrix.accounts.zoe]\n" in text
    assert 'user = "@desk:hub.test"' in text
    assert 'homeserver = "https://hub.test"' in text
    assert '# owners = ["matrix/@you:hub.test"]' in text
    assert "no owner has an account here" in done.stderr


def test_what_needs_nothing_of_yours_is_ready_at_once(tmp_path: Path) -> None:
    done = init(tmp_path, "--people", "page,websocket,web")
    assert done.exit_code == 0, done.output
    assert "waits as comments" not in done.output
    assert "\nThen: callboard serve --config " in done.output
    assert "\nThen: callboard login --config " in done.output
    text = (tmp_path / "callboard.toml").read_text()
    assert {"[connectors.page]", "[connectors.websocket]"} <= set(text.splitlines())


def test_all_that_a_platform_lacks_is_named_at_once(tmp_path: Path) -> None:
    done = init(tmp_path, "--people", "slack")
    assert "SLACK_BOT_TOKEN is not set" in done.output
    assert "SLACK_APP_TOKEN is not set" in done.output
    done = init(tmp_path, "--people", "matrix", "--force")
    assert "it needs addresses and accounts of yours" in done.output
    assert "MATRIX_TOKEN is not set" in done.output


def test_a_number_that_is_made_up_is_not_taken_for_yours(tmp_path: Path) -> None:
    tokens = {"WHATSAPP_APP_SECRET": "0123456789abcdef" * 2, "WHATSAPP_TOKEN": KEY}
    words = {"WHATSAPP_VERIFY_TOKEN": "wonderland-is-here"}
    done = init(tmp_path, "--people", "whatsapp", **tokens, **words)
    assert done.exit_code == 0, done.output
    why = "it needs phone_number_id of yours instead of the example's"
    assert f"whatsapp waits as comments in {tmp_path}/callboard.toml: {why}\n" in (
        done.output
    )
    # Meta calls us: what it calls is there.
    assert "[connectors.http]\n" in (tmp_path / "callboard.toml").read_text()


def test_ctrl_c_in_the_middle_of_the_trial_leaves_nothing(tmp_path: Path) -> None:
    with open_little_site({"POST /v1/chat/completions": (200, HANGS)}) as site:
        flags = ["--model", "openai", "--base-url", f"{site.url}/v1", "--yes"]
        started = subprocess.Popen(
            [sys.executable, "-m", "connectors", "init", *flags, "--ollama", NOBODY],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert site.is_asked.wait(30)
        started.send_signal(signal.SIGINT)
        out, err = started.communicate(timeout=30)
    assert started.returncode == 130, (out, err)
    assert b"Traceback" not in err
    assert not everything(tmp_path)


def test_several_agents_are_made_and_the_first_may_ask_the_others(
    tmp_path: Path,
) -> None:
    done = init(tmp_path, "--agent", "zoe, ben,carl")
    assert done.exit_code == 0, done.output
    agents = load_app(tmp_path / "callboard.toml", {}).value.agents
    assert [*agents] == ["zoe", "ben", "carl"]
    assert agents["zoe"].delegates == ("ben", "carl")
    assert agents["ben"].description
    assert (tmp_path / "agents" / "carl" / "IDENTITY.md").is_file()
