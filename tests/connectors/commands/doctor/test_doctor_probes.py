"""Proves what `callboard doctor` finds out by asking around."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import TYPE_CHECKING, cast

import httpx
import msgspec
import pytest
import trio
import trio.testing
from click.testing import CliRunner
from hypothesis import given, strategies as st

from actors.messages.inbound import Address
from actors.schedule.appointments import Appointment
from actors.schedule.rows import as_entry
from connectors.admin.probes import Finding, Probe, ask_all
from connectors.commands.doctor import main as doctor
from connectors.commands.doctor.main import connector_probes
from connectors.commands.doctor.models import (
    ask_account,
    is_listed,
    listed,
    model_probes,
    read_script,
)
from connectors.config.models import (
    AnthropicModelConfig,
    GoogleModelConfig,
    HttpModelConfig,
    OllamaModelConfig,
    OpenAIModelConfig,
    ScriptedModelConfig,
)
from connectors.settings.load import load_app
from runtime.secret import Secret
from runtime.store.rows import Commit
from tests.fakes.sites.threaded_site import HANGS, Answer, open_little_site
from tests.support.desk import commit_to, write_database

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connectors.config.app import AppConfig

OFFLINE = Path(__file__).parents[4] / "config" / "offline.toml"
MCP_SERVER = Path(__file__).parents[3] / "fakes" / "mcp" / "server.py"
OFFERED = "echo, picture, fail, environment, sleep, die, change"
KEY = "sk-gold-and-round-1234"
PLANTS = "PLANTS1234567"
SIGNING = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"
ENVIRONMENT = {"KEY": KEY, "HOOK": SIGNING, "MATRIX_TOKEN": "syt-for-this-test"}


def app_of(folder: Path, more: str) -> AppConfig:
    file = folder / "callboard.toml"
    text = (
        f'include = ["{OFFLINE}"]\n[store]\npath = "{folder}/state/board.db"\n'
        f'[workspace]\npath = "{folder}/work"\n{more}\n'
    )
    if "[connectors.http]" not in more:
        text += "[connectors.http]\nport = 0\n"
    file.write_text(text, encoding="utf-8")
    return load_app(file, ENVIRONMENT).value


def looked(folder: Path, more: str, *arguments: str) -> tuple[int, str]:
    """Run the command; give its exit code and what it wrote."""
    app_of(folder, more)
    flags = ["--config", str(folder / "callboard.toml"), "--json", *arguments]
    done = CliRunner(env=ENVIRONMENT).invoke(
        doctor.command, flags, standalone_mode=False
    )
    assert done.exception is None
    assert KEY not in done.stdout
    return cast("int", done.return_value), done.stdout


def found_in(out: str, about: str) -> list[tuple[str, str, str]]:
    found = cast("list[dict[str, str]]", json.loads(out))
    return [
        (each["state"], each["text"], each["cure"])
        for each in found
        if each["about"] == about
    ]


def answering(status: int, body: object = None) -> httpx.MockTransport:
    """Make what gives every request the same answer."""
    return httpx.MockTransport(lambda _: httpx.Response(status, json=body))


OPENAI = OpenAIModelConfig(
    model="", base_url="http://models.test/v1", api_key=Secret(KEY)
)
OLLAMA = OllamaModelConfig(model="")


@pytest.mark.parametrize(
    ("status", "state", "words"),
    [
        (200, "ok", "reached, the key is taken, gpt-x"),
        (401, "wrong", "does not take the key"),
        (403, "wrong", "does not take the key"),
        (404, "unknown", "the key was not tried"),
        (429, "warning", "too many calls"),
        (418, "wrong", "does not answer as it should"),
        (503, "warning", "has trouble now"),
    ],
)
async def test_an_account_is_judged_by_its_list(
    status: int, state: str, words: str
) -> None:
    transport = answering(status, {"data": [{"id": "gpt-x"}]})
    (found,) = await ask_account("models.main", OPENAI, ("gpt-x",), transport)
    assert found.state == state
    assert words in found.text
    assert bool(found.cure) == (state in {"wrong", "warning"})


@pytest.mark.parametrize(
    ("config", "path", "header"),
    [
        (OPENAI, "/v1/models", "authorization"),
        (
            AnthropicModelConfig(model="", api_key=Secret(KEY)),
            "/v1/models",
            "x-api-key",
        ),
        (
            GoogleModelConfig(model="", api_key=Secret(KEY)),
            "/v1beta/models",
            "x-goog-api-key",
        ),
        (OLLAMA, "/api/tags", ""),
    ],
)
async def test_each_provider_is_asked_in_its_own_way(
    config: HttpModelConfig, path: str, header: str
) -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json={})

    await ask_account("models.main", config, (), httpx.MockTransport(answer))
    (request,) = asked
    assert (request.method, request.url.path) == ("GET", path)
    assert not header or KEY in request.headers[header]


@pytest.mark.parametrize(
    ("config", "there", "base"),
    [
        (
            OpenAIModelConfig(model="", base_url="http://u:pass@local.test:1234"),
            "/v1/models",
            "http://local.test:1234/v1",
        ),
        (
            OpenAIModelConfig(model="", base_url="http://local.test/v1/responses"),
            "/v1/models",
            "http://local.test/v1",
        ),
        (
            OllamaModelConfig(model="", base_url="http://local.test/v1/"),
            "/api/tags",
            "http://local.test",
        ),
    ],
)
@pytest.mark.parametrize("other", [404, 200], ids=["404", "a page"])
@pytest.mark.parametrize("status", [200, 401])
async def test_an_address_without_its_version_is_found_out(
    config: HttpModelConfig, there: str, base: str, other: int, status: int
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == there:
            return httpx.Response(status, json={"data": [], "models": []})
        return httpx.Response(other, text="<html>hello</html>")

    (found,) = await ask_account("models.main", config, (), httpx.MockTransport(answer))
    assert (found.state, found.cure) == ("wrong", f'set base_url = "{base}"')
    assert "pass" not in found.text


async def test_an_address_that_is_right_is_asked_once() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(404, text="no list here")

    (found,) = await ask_account("models.main", OPENAI, (), httpx.MockTransport(answer))
    assert found.state == "unknown"
    assert len(asked) == 1


async def test_a_local_server_without_the_model_says_how_to_get_it() -> None:
    transport = answering(200, {"models": [{"name": "tiny:latest"}]})
    (found,) = await ask_account("models.main", OLLAMA, ("tiny", "qwen3"), transport)
    assert (found.state, found.cure) == ("wrong", "ollama pull qwen3")
    (found,) = await ask_account("models.main", OLLAMA, ("tiny",), transport)
    assert found.state == "ok"


async def test_a_key_that_cannot_be_sent_is_said() -> None:
    config = msgspec.structs.replace(OPENAI, api_key=Secret("two\nlines-of-it"))
    (found,) = await ask_account("models.main", config, (), answering(200))
    assert found.state == "wrong"
    assert "cannot be sent" in found.text


@given(st.binary(max_size=300))
def test_whatever_a_list_holds_it_is_judged(body: bytes) -> None:
    (found,) = listed("models.main", OPENAI, body, ("gpt-x",))
    assert found.state in {"wrong", "warning"}


@pytest.mark.parametrize(
    ("model", "known", "is_there"),
    [
        ("gemini-2.5-flash", "models/gemini-2.5-flash", True),
        ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929", True),
        ("qwen3", "qwen3:latest", True),
        ("qwen3", "qwen3:8b", False),
        ("gpt-4", "gpt-4.1-mini", False),
    ],
)
def test_a_name_is_found_as_providers_write_it(
    model: str, known: str, *, is_there: bool
) -> None:
    assert is_listed(model, [known]) == is_there


async def test_all_are_asked_at_once_and_none_holds_up_the_others(
    autojump_clock: trio.testing.MockClock,
) -> None:
    del autojump_clock

    async def sleeps(seconds: float) -> list[Finding]:
        await trio.sleep(seconds)
        return [Finding("ok", "model", f"after {seconds:g}\x1b[2J")]

    def probe(seconds: float) -> Probe:
        return Probe("model", f"models.{seconds:g}", lambda: sleeps(seconds))

    began = trio.current_time()
    found = await ask_all([probe(4), probe(1e9), probe(1)], 5)
    assert trio.current_time() - began == pytest.approx(5)
    assert [each.state for each in found] == ["ok", "wrong", "ok"]
    assert found[0].text.startswith("after 4")
    assert "\x1b" not in found[0].text
    assert "no answer within 5 s" in found[1].text


def test_each_account_and_connector_is_looked_at_once(tmp_path: Path) -> None:
    more = (
        '[accounts.home]\nkind = "ollama"\n[models.big]\nkind = "ollama"\nmodel = "b"\n'
        'accounts = ["home"]\n[models.own]\nkind = "openai"\nmodel = "m"\n'
    )
    app = app_of(tmp_path, more)
    names = [each.name for each in (*model_probes(app), *connector_probes(app))]
    assert sorted(names) == [
        *("accounts.home", "connectors.http", "connectors.terminal"),
        *("models.own", "models.scripted"),
    ]


async def test_servers_for_recordings_and_speech_are_asked(tmp_path: Path) -> None:
    more = (
        '[media.transcriber]\nbase_url = "http://ears.test/v1"\n'
        'api_key = { env = "KEY" }\n[media.speaker]\nmodel = "tts"\n'
    )
    asked: list[tuple[str, str]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append((str(request.url), request.headers.get("authorization", "")))
        return httpx.Response(200, json={"data": [{"id": "whisper-1"}]})

    probes = model_probes(app_of(tmp_path, more), httpx.MockTransport(answer))
    speech = [each for each in probes if each.name.startswith("media.")]
    found = [finding for each in speech for finding in await each.ask()]
    assert asked == [
        ("http://ears.test/v1/models", f"Bearer {KEY}"),
        ("https://api.openai.com/v1/models", ""),
    ]
    assert [(each.state, each.text) for each in found] == [
        ("ok", "media.transcriber: reached, the key is taken, whisper-1"),
        ("warning", "media.speaker: tts is not among its 1 models"),
    ]


@pytest.mark.parametrize("rules", [None, "[[rules", "[[rules]]\nwhat = 1\n"])
async def test_wrong_rules_of_an_embedded_model_are_told(
    rules: str | None, tmp_path: Path
) -> None:
    script = tmp_path / "rules.toml"
    if rules is not None:
        script.write_text(rules)
    (found,) = await read_script("models.own", ScriptedModelConfig(script=script))
    assert (found.state, found.about) == ("wrong", "model")
    assert found.text.startswith("models.own: ")
    assert "rules.toml" in found.text


def test_a_port_that_another_program_has_is_wrong(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        more = f"[connectors.http]\nport = {other.getsockname()[1]}\n"
        code, out = looked(tmp_path, more, "--timeout", "4")
    found = found_in(out, "connector")
    assert code == 1
    assert [each for each in found if "another program has it" in each[1]]


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({"ready": True, "reasons": []}, 0, "a Callboard runs at"),
        ({"ready": False, "reasons": ["the disk is full"]}, 1, "is not ready"),
        ({"hello": "world"}, 1, "another program has it"),
    ],
)
def test_a_callboard_that_runs_already_is_well(
    tmp_path: Path,
    body: Mapping[str, object],
    code: int,
    words: str,
) -> None:
    answers = {"GET /readyz": (200, json.dumps(body).encode())}
    with open_little_site(answers) as site:
        more = f"[connectors.http]\nport = {site.url.rpartition(':')[2]}\n"
        ended, out = looked(tmp_path, more)
    assert ended == code
    found = found_in(out, "connector")
    assert [each for each in found if words in each[1]]


def test_an_address_that_is_not_ours_is_wrong(tmp_path: Path) -> None:
    more = '[connectors.http]\nhost = "192.0.2.1"\napi_key = { env = "KEY" }\n'
    code, out = looked(tmp_path, more)
    assert code == 1
    found = found_in(out, "connector")
    assert [each for each in found if "no such address" in each[1]]


MATRIX = '[connectors.matrix]\nkind = "matrix"\nhomeserver = "{url}"\n'
LET_IN = (
    '[connectors.matrix.accounts.anna]\nuser = "@anna:hub.test"\n'
    'access_token = { env = "MATRIX_TOKEN" }\n'
)
LOGS_IN = LET_IN.replace("access_token", "password")
WHOAMI, LOGIN = "GET /_matrix/client/v3/account/whoami", "GET /_matrix/client/v3/login"


@pytest.mark.parametrize(
    ("account", "answers", "code", "words"),
    [
        (LET_IN, {WHOAMI: (200, b'{"user_id":"@anna:hub.test"}')}, 0, "let in as"),
        (LET_IN, {WHOAMI: (200, b'{"user_id":"@x:hub.test"}')}, 1, "belongs to"),
        (LET_IN, {WHOAMI: (401, b'{"errcode":"M_UNKNOWN_TOKEN"}')}, 1, "UNKNOWN"),
        (LET_IN, {}, 1, "no Matrix homeserver"),
        (LET_IN, {WHOAMI: (200, HANGS)}, 1, "no answer within 1 s"),
        (
            LOGS_IN,
            {LOGIN: (200, b'{"flows":[{"type":"m.login.password"}]}')},
            0,
            "which was not tried",
        ),
        (
            LOGS_IN,
            {LOGIN: (200, b'{"flows":[]}')},
            1,
            "lets nobody in by password",
        ),
    ],
)
def test_a_homeserver_is_asked_who_we_are(
    tmp_path: Path,
    account: str,
    answers: Mapping[str, Answer],
    code: int,
    words: str,
) -> None:
    with open_little_site(answers) as site:
        more = MATRIX.format(url=site.url) + account
        ended, out = looked(tmp_path, more, "--timeout", "1")
        assert ended == code
        assert all(each.startswith("GET ") for each in site.asked)
    found = found_in(out, "connector")
    assert [each for each in found if words in each[1]], found


@pytest.mark.parametrize(
    ("path", "state", "words"),
    [("/told", "ok", "HTTP 405"), ("/hangs", "wrong", "within 1 s")],
)
def test_a_receiver_of_webhooks_is_reached_and_told_nothing(
    tmp_path: Path,
    path: str,
    state: str,
    words: str,
) -> None:
    with open_little_site(
        {"GET /told": (405, b""), "GET /hangs": (200, HANGS)}
    ) as site:
        more = (
            f'[webhooks.out.board]\nurl = "{site.url}{path}"\n'
            f'secret = {{ env = "HOOK" }}\nprivate = true\n'
        )
        code, out = looked(tmp_path, more, "--timeout", "1")
        assert not [each for each in site.asked if each.startswith("POST")]
    ((found, text, _),) = found_in(out, "webhook")
    assert (code, found) == (int(state == "wrong"), state)
    assert words in text


def test_a_database_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "board.db").write_bytes(b"no database " * 1000)
    code, out = looked(tmp_path, "", "--offline")
    assert code == 1
    ((_, why, cure),) = [x for x in found_in(out, "database") if x[0] == "wrong"]
    assert "is no database" in why or "not a database" in why, why
    assert "restore" in cure


def test_what_rests_because_it_failed_is_named(tmp_path: Path) -> None:
    app = app_of(tmp_path, "")
    path = Path(app.store.path)
    path.parent.mkdir()
    write_database(path)
    it = Appointment(
        kind="task",
        agent="anna",
        address=Address("terminal", "you"),
        sender_id="you",
        person="terminal/you",
        text="water the plants",
        repeat="daily",
        anchor=0.0,
        paused="failures",
    )
    commit_to(path, Commit(at=1.0, entries=(as_entry(PLANTS, "person:you", it, 7, 0),)))
    code, out = looked(tmp_path, "", "--offline")
    assert code == 0
    state, text, cure = found_in(out, "scheduler")[-1]
    assert state == "warning"
    assert text == f"task {PLANTS[:10]} of anna rests: it failed"
    assert cure.startswith(f"callboard schedule history {PLANTS[:10]}")


def test_what_is_due_with_the_scheduler_off_and_missing_programs_are_said(
    tmp_path: Path,
) -> None:
    more = (
        "[scheduler]\nis_on = false\n"
        '[hooks.gone]\nevents = ["message_received"]\ncommand = ["no-such-thing"]\n'
        '[hooks.lost]\nevents = ["message_received"]\npython = "no_such_point"\n'
        '[hooks.off]\nevents = ["message_received"]\ncommand = ["x"]\ndisabled = true\n'
        '[webhooks.in.forge]\nsecret = { env = "HOOK" }\nagents = ["anna"]\n'
        'chat = "terminal/you"\ntask = "See what it is."\n'
    )
    code, out = looked(tmp_path, more, "--offline")
    assert code == 1
    hooks = found_in(out, "hook")
    assert [each[0] for each in hooks] == ["wrong", "wrong", "ok"]
    assert all(each[2] for each in hooks[:2])
    assert found_in(out, "scheduler")[0][0] == "warning"
    assert "/webhooks/forge" in found_in(out, "webhook")[0][1]
    assert not found_in(out, "connector")


def test_a_server_of_tools_is_started_once_where_it_leaves_nothing(
    tmp_path: Path,
) -> None:
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    (tmp_path / "srv.py").write_text(MCP_SERVER.read_text())
    more = (
        '[mcpServers.mine]\ncommand = "python3"\nargs = ["srv.py", "good"]\n'
        '[mcpServers.lost]\ncommand = "python3"\nargs = ["gone.py"]\n'
        '[mcpServers.none]\ncommand = "no-such-thing"\n'
        '[mcpServers.off]\ncommand = "x"\ndisabled = true\n'
    )
    code, out = looked(tmp_path, more)
    mine, lost, none = found_in(out, "tools")
    assert code == 1
    assert mine[:2] == ("ok", f"mcpServers.mine: starts, and offers {OFFERED}")
    assert lost[0] == "wrong"
    assert "ended with code 2" in lost[1]
    assert "can't open file" in lost[1]
    assert "readable" in lost[2]
    assert "no program 'no-such-thing'" in none[1]
    assert not (tmp_path / "work").exists()
    assert len(found_in(looked(tmp_path, more, "--offline")[1], "tools")) == 3
