"""Proves that every settings file in `config/` loads, and that default.toml is true."""

from __future__ import annotations

import re
import tomllib
from inspect import get_annotations
from itertools import pairwise
from pathlib import Path
from typing import cast

import msgspec
import pytest
from msgspec.structs import FieldInfo

from actors.config import access, prompt as prompts, schedule as later
from actors.config.agents import AgentConfig, HiringConfig
from actors.config.limits import (
    ApprovalConfig,
    AuditConfig,
    BudgetConfig,
    LedgerConfig,
    LimitsConfig,
    PermissionConfig,
    ToolCallConfig,
)
from actors.config.presence import PresenceConfig
from actors.config.routes import RouteConfig, RoutingConfig
from actors.config.sessions import (
    BufferingConfig,
    BusyPolicyConfig,
    CompactionConfig,
    SessionConfig,
    WatchdogConfig,
)
from actors.messages.state import RetryConfig
from connectors.chat.discord import platform as discord
from connectors.chat.matrix import platform as matrix
from connectors.chat.qq import platform as qq
from connectors.chat.slack import platform as slack
from connectors.chat.telegram import platform as telegram
from connectors.chat.terminal.platform import TerminalConfig
from connectors.chat.websocket.platform import WebSocketConfig
from connectors.chat.whatsapp import platform as whatsapp
from connectors.commands import shipped_settings
from connectors.config import (
    app as edges,
    app as notebook,
    hooks,
    mcp as further,
    models,
    models as memory,
    tools,
)
from connectors.config.app import AppConfig
from connectors.config.hooks import HookConfig
from connectors.settings.load import load_app
from connectors.web.eliza import platform as web
from connectors.web.page import platform as page

CONFIG = Path(__file__).parents[3] / "config"
SCRIPTS = {"prices.toml"}  # and `*_script.toml`: prices and rules, not settings
FILES = sorted(
    path
    for path in CONFIG.rglob("*.toml")
    if path.name not in SCRIPTS and not path.stem.endswith("_script")
)
SECRETS = {
    "ANTHROPIC_API_KEY": "sk-ant-for-this-test",
    "GEMINI_API_KEY": "gemini-for-this-test",
    "OPENAI_API_KEY": "sk-for-this-test",
    "OPENROUTER_API_KEY": "sk-or-for-this-test",
    "CALLBOARD_API_KEY": "key-for-this-test",
    "BRAVE_API_KEY": "key-for-this-test",
    "DISCORD_TOKEN": "discord-for-this-test",
    "MATRIX_TOKEN": "syt-for-this-test",
    "TELEGRAM_TOKEN": "7:AAAA-for-this-test-alone-BBBBBBBBBB",
    "TELEGRAM_WEBHOOK_SECRET": "for-this-test-alone",
    "WHATSAPP_APP_SECRET": "0123456789abcdef0123456789abcdef",
    "WHATSAPP_VERIFY_TOKEN": "verify-for-this-test",
    "WHATSAPP_TOKEN": "EAA-for-this-test",
    "QQ_APP_SECRET": "qq-for-this-test",
    "CALLBOARD_WEB_KEY": "web-for-this-test",
    "SLACK_BOT_TOKEN": "xoxb-for-this-test",
    "SLACK_APP_TOKEN": "xapp-for-this-test",
}

# A setting that is unset by default: `# key = value`, not indented, no sentence.
UNSET = re.compile(r"^# ([a-z_]+ = .+)$", re.MULTILINE)
OUT_OF_FORCE = re.compile(r"^#: ?", re.MULTILINE)
"""What asks for secrets is shown with this in front."""

NEEDED = {
    "events",
    *("script", "model", "agent", "kind", "scope", "may_use"),
    *("homeserver", "user", "token", "key"),
    "bot_token",
    *("secret", "chat", "task", "url"),
    *("app_id", "app_secret", "verify_token", "phone_number_id", "access_token"),
}
"""Settings without a default; default.toml shows an example of each."""

EXAMPLES = {"hard_usd"}
"""Unset by default; default.toml shows one of several of which one is needed."""
EITHER = {"command", "allowed"}
"""Settings of which one or the other is needed; default.toml shows one."""

Table = dict[str, object]


def default_text() -> str:
    text = (CONFIG / "default.toml").read_text(encoding="utf-8")
    return OUT_OF_FORCE.sub("", text)


def tables(text: str) -> list[tuple[type[msgspec.Struct], Table]]:
    """Give each table of default.toml with the Struct that it describes."""
    found = cast("dict[str, dict[str, Table]]", tomllib.loads(text))
    top: Table = {name: found[name] for name in found}
    routes = cast("list[Table]", found["routes"])
    context = found["agent_defaults"]["context"]
    accounts = cast("dict[str, Table]", found["connectors"]["matrix"]["accounts"])
    discords = cast("dict[str, Table]", found["connectors"]["discord"]["accounts"])
    bots = cast("dict[str, Table]", found["connectors"]["telegram"]["accounts"])
    numbers = cast("dict[str, Table]", found["connectors"]["whatsapp"]["accounts"])
    asked = cast("dict[str, Table]", found["connectors"]["qq"]["accounts"])
    keys = cast("dict[str, Table]", found["connectors"]["web"]["keys"])
    apps = cast("dict[str, Table]", found["connectors"]["slack"]["accounts"])
    rooms = cast("dict[str, Table]", found["connectors"]["page"]["rooms"])
    incoming = cast("dict[str, Table]", found["webhooks"]["in"])
    outgoing = cast("dict[str, Table]", found["webhooks"]["out"])
    return [
        (AppConfig, top),
        (edges.StoreConfig, cast("Table", found["store"])),
        (edges.LogConfig, cast("Table", found["log"])),
        (SessionConfig, cast("Table", found["sessions"])),
        (CompactionConfig, cast("Table", found["compaction"])),
        (BufferingConfig, cast("Table", found["buffering"])),
        (BusyPolicyConfig, cast("list[Table]", found["busy_policies"])[0]),
        (WatchdogConfig, cast("Table", found["watchdog"])),
        (LimitsConfig, cast("Table", found["limits"])),
        (RetryConfig, cast("Table", found["retries"])),
        (AuditConfig, cast("Table", found["audit"])),
        (ToolCallConfig, cast("Table", found["tool_calls"])),
        (ApprovalConfig, cast("Table", found["approvals"])),
        (PresenceConfig, cast("Table", found["presence"])),
        (PermissionConfig, cast("list[Table]", found["permissions"])[0]),
        (later.SchedulerConfig, cast("Table", found["scheduler"])),
        (
            hooks.WebhooksConfig,
            cast("Table", found["webhooks"]) | {"in": {}, "out": {}},
        ),
        (hooks.WebhookInConfig, incoming["deploys"]),
        (hooks.WebhookOutConfig, outgoing["ops"]),
        (tools.SandboxConfig, cast("Table", found["sandbox"])),
        (tools.FetchConfig, cast("Table", found["fetch"])),
        (tools.WebSearchConfig, cast("Table", found["web_search"])),
        (tools.WorkspaceConfig, cast("Table", found["workspace"])),
        (tools.FilesConfig, cast("Table", found["files"])),
        (memory.MemorySettings, cast("Table", found["memory"])),
        (memory.OpenAIEmbedderConfig, found["embedders"]["openai"]),
        (memory.OllamaEmbedderConfig, found["embedders"]["ollama"]),
        (tools.MediaConfig, cast("Table", found["media"])),
        (tools.TranscriberConfig, found["media"]["transcriber"]),
        (tools.SpeakerConfig, found["media"]["speaker"]),
        (HiringConfig, cast("Table", found["hiring"])),
        (LedgerConfig, cast("Table", found["ledger"])),
        (BudgetConfig, cast("list[Table]", found["budgets"])[0]),
        (models.OpenAIAccountConfig, found["accounts"]["work"]),
        (models.OpenAIResponsesAccountConfig, found["accounts"]["responses_work"]),
        (models.AnthropicAccountConfig, found["accounts"]["anthropic_work"]),
        (models.GoogleAccountConfig, found["accounts"]["google_work"]),
        (models.OllamaAccountConfig, found["accounts"]["desk"]),
        (models.ScriptedModelConfig, found["models"]["scripted"]),
        (models.CliModelConfig, found["models"]["claude"]),
        (models.OpenAIModelConfig, found["models"]["openai"]),
        (models.OpenAIResponsesModelConfig, found["models"]["openai_responses"]),
        (models.AnthropicModelConfig, found["models"]["anthropic"]),
        (models.GoogleModelConfig, found["models"]["google"]),
        (models.OllamaModelConfig, found["models"]["ollama"]),
        (TerminalConfig, found["connectors"]["terminal"]),
        (edges.HttpConfig, found["connectors"]["http"]),
        (access.AccessConfig, cast("Table", found["connectors"]["http"]["access"])),
        (access.AgentAccessConfig, cast("list[Table]", found["access"])[0]),
        (discord.DiscordConfig, found["connectors"]["discord"]),
        (discord.DiscordAccountConfig, discords["anna"]),
        (matrix.MatrixConfig, found["connectors"]["matrix"]),
        (matrix.MatrixAccountConfig, accounts["anna"]),
        (telegram.TelegramConfig, found["connectors"]["telegram"]),
        (telegram.TelegramAccountConfig, bots["anna"]),
        (whatsapp.WhatsAppConfig, found["connectors"]["whatsapp"]),
        (whatsapp.WhatsAppAccountConfig, numbers["anna"]),
        (qq.QQConfig, found["connectors"]["qq"]),
        (qq.QQAccountConfig, asked["anna"]),
        (page.PageConfig, found["connectors"]["page"]),
        (page.PageRoomConfig, rooms["lobby"]),
        (web.WebConfig, found["connectors"]["web"] | {"keys": {}}),
        (web.WebKeyConfig, keys["page"]),
        (slack.SlackConfig, found["connectors"]["slack"]),
        (slack.SlackAccountConfig, apps["anna"]),
        (WebSocketConfig, found["connectors"]["websocket"]),
        (HookConfig, found["hooks"]["words"]),
        (further.McpServerConfig, found["mcpServers"]["files"]),
        (further.SkillsConfig, cast("Table", found["skills"])),
        (notebook.NotebookConfig, cast("Table", found["notebook"])),
        (notebook.ProjectsConfig, cast("Table", found["projects"])),
        (AgentConfig, cast("Table", found["agent_defaults"])),
        (RoutingConfig, found["agent_defaults"]["routing"]),
        (prompts.ContextConfig, context),
        (prompts.LayerBudgets, cast("Table", context["budgets"])),
        (RouteConfig, routes[0]),
    ]


def names(kind: type[msgspec.Struct]) -> set[str]:
    tag = kind.__struct_config__.tag_field
    fields = {each.encode_name for each in msgspec.structs.fields(kind)}
    return {*fields, *([tag] if tag else [])}


def defaults(kind: type[msgspec.Struct]) -> Table:
    fields = msgspec.structs.fields(kind)
    return {each.encode_name: default_of(each) for each in fields if not each.required}


def default_of(field: FieldInfo) -> object:
    if field.default is not msgspec.NODEFAULT:
        return field.default
    assert callable(field.default_factory)
    made = msgspec.json.encode(field.default_factory())
    return cast("object", msgspec.json.decode(made))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_shipped_file_loads_without_a_warning(path: Path) -> None:
    settings = load_app(path, SECRETS)
    assert settings.warnings == ()
    assert settings.value.agents


@pytest.mark.parametrize("name", ["default.toml", "offline.toml"])
def test_the_files_of_the_first_run_need_no_secret(name: str) -> None:
    assert load_app(CONFIG / name, {}).secrets == ()


def test_no_start_has_to_evaluate_the_types_of_settings() -> None:
    texts = [
        f"{kind.__module__}.{kind.__qualname__}"
        for kind, _ in tables(default_text())
        if kind is not RetryConfig  # one that journals hold, too
        if any(isinstance(each, str) for each in get_annotations(kind).values())
    ]
    assert not texts, "their modules import `annotations` from `__future__`"


def test_default_toml_lists_exactly_the_settings_there_are() -> None:
    for kind, table in tables(UNSET.sub(r"\1", default_text())):
        assert set(table) == names(kind), kind.__name__


def test_default_toml_gives_the_true_defaults() -> None:
    for kind, table in tables(default_text()):
        for name, default in defaults(kind).items():
            if name in EITHER:
                assert table[name] != default, name
            elif default is None:
                is_table = isinstance(table.get(name), dict)  # shown by itself
                is_shown = name in table and name not in EXAMPLES and not is_table
                assert not is_shown, f"{name} is unset by default"
            elif kind is not AppConfig or name == "default_agent":
                shown, wanted = plain(table[name]), plain(default)
                assert shown == wanted, name
                assert type(shown) is type(wanted), name


def plain(value: object) -> object:
    """Make a list of TOML and a tuple of settings the same."""
    return tuple(cast("list[object]", value)) if isinstance(value, list) else value


def test_what_default_toml_gives_an_example_of_is_marked_as_needed() -> None:
    for kind, table in tables(default_text()):
        needed = set(table) - set(defaults(kind))
        assert needed <= NEEDED | names(AppConfig), kind.__name__
    assert default_text().count("# Needed: ") == 27


def test_default_toml_has_a_reason_above_every_setting() -> None:
    lines = default_text().splitlines()
    for above, line in pairwise(lines):
        if re.match(r"(# )?[a-z_]+ = ", line) and not line.startswith(
            ("kind", "prompt")
        ):
            assert above.startswith("# "), line


def test_nothing_is_written_beside_the_settings_that_come_with_the_program(
    tmp_path: Path,
) -> None:
    environment = {**SECRETS, "STATE_DIRECTORY": str(tmp_path)}
    for path in FILES:
        app = load_app(path, environment).value
        for written in (app.store.path, app.workspace.path, app.memory.folder):
            assert Path(written).parent == tmp_path / "var", path


def test_every_persona_has_an_identity() -> None:
    folders = [path for path in (CONFIG / "agents").iterdir() if path.is_dir()]
    assert {path.name for path in folders} >= {"anna", "ben"}
    for folder in folders:
        assert (folder / "IDENTITY.md").read_text(encoding="utf-8").startswith("# ")


def test_in_a_checkout_the_shipped_files_are_these() -> None:
    assert shipped_settings() == CONFIG.resolve()
