"""Writes the pages of docs/reference: settings, commands, metrics, HTTP, events.

`python -m tests.support.reference` writes them; a test fails while one is not true.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast, get_args

import click
from msgspec import inspect as shapes, structs

from actors.hooks.book import FinishedTurn, HookSubject
from actors.hooks.chain import Event
from actors.journal.notices import EVENTS
from connectors.app.forwarding import STANDING_BY
from connectors.chat.accounts import LABELS
from connectors.cli import callboard
from connectors.settings.load import settings_type
from connectors.settings.schema import (
    COMMON_TABLES,
    common_texts,
    field_texts,
    key_line,
    level_of,
    tables,
)

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "reference"
MADE = "<!-- python -m tests.support.reference writes this page from the code. -->"
WIDTH = 100


TABLES = COMMON_TABLES | {
    "agents.x": "An agent: its character, its model, its tools and rights.",
    "agent_defaults": "What holds for every agent that does not say otherwise.",
    "embedders.x": "A model that makes vectors of texts, for memory.",
    "notebook": "Where agents report bugs.",
    "people": "Languages and linked accounts of people.",
}
"""What tables are for whose code does not say it in such words."""


def cell(text: str) -> str:
    """Write a text as a cell of a table; code in it stays as it is."""
    parts = " ".join(text.split()).replace("|", "\\|").split("`")
    return "`".join(
        part if number % 2 else part.replace("<", "&lt;")
        for number, part in enumerate(parts)
    )


def code(text: str) -> str:
    """Write a text as code in a cell of a table."""
    return f"`{text}`".replace("|", "\\|") if text else ""


def settings() -> Iterator[str]:
    """Give all settings by table, the common ones first."""
    yield "Few companies need more than these:"
    yield ""
    yield "| setting | what it does |"
    yield "|---|---|"
    for key, words in common_texts():
        shown = key.replace(".x", ".<name>")
        yield f"| `{shown}` | {cell(words)} |"
    yield ""
    yield "All others have a default that suits most companies. Change an *expert*"
    yield "setting only if you measure what it does. `config/default.toml` has the"
    yield "reason of each default; `callboard config explain KEY` says what a setting"
    yield "may be."
    seen: set[str] = set()
    for table, struct in each_table():
        heading = f"[{'.'.join(table)}]" if table else "The top of the file"
        kind = f', kind = "{struct.tag}"' if struct.tag is not None else ""
        if heading + kind in seen:
            continue
        seen.add(heading + kind)
        yield from ("", f"## `{heading}`{kind}" if table else f"## {heading}", "")
        yield "| setting | default | what it does | level |"
        yield "|---|---|---|---|"
        texts = field_texts(struct.cls)
        for field in struct.fields:
            level = level_of((*table, field.encode_name))
            shown = cut(key_line(field))
            name = field.encode_name
            known = "" if table else TABLES.get(name) or TABLES.get(f"{name}.x")
            words = cell(texts.get(field.name) or known or summary(field.type))
            yield f"| `{field.encode_name}` | {code(shown)} | {words} | {level} |"


def summary(kind: shapes.Type) -> str:
    """Give what the code says a table is, or one of each in it; empty: it is none."""
    first = next(tables(kind, ()), None)
    if first is None:
        return ""
    return (first[1].cls.__doc__ or "").partition("\n\n")[0]


def cut(line: str) -> str:
    """Give the value of a key's line, if it is short."""
    if line.startswith("# "):
        return "not set"
    value = line.partition(" = ")[2]
    return value if len(value) < WIDTH // 2 else f"{value[: WIDTH // 2]} …"


def each_table() -> Iterator[tuple[tuple[str, ...], shapes.StructType]]:
    """Give every table that settings may have, depth first."""
    yield from below((), shapes.type_info(settings_type()))


def below(
    way: tuple[str, ...], kind: shapes.Type
) -> Iterator[tuple[tuple[str, ...], shapes.StructType]]:
    """Give the tables at a place and below."""
    for place, struct in tables(kind, way):
        yield place, struct
        for field in struct.fields:
            yield from below((*place, field.encode_name), field.type)


def commands() -> Iterator[str]:
    """Give what `--help` says of each command."""
    named = ["-h", "--help"]
    whole = click.Context(callboard, info_name="callboard", help_option_names=named)
    yield from helped(callboard, whole)


def helped(command: click.Command, context: click.Context) -> Iterator[str]:
    """Give the help of a command and of those below it."""
    context.terminal_width = WIDTH
    # click keeps the option as the first who ran the command had it named.
    command._help_option = None  # pyright: ignore[reportPrivateUsage]
    yield f"## {context.command_path}"
    yield from ("", "```text", command.get_help(context), "```", "")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            own = command.get_command(context, name)
            if own is not None:
                inner = click.Context(own, info_name=name, parent=context)
                yield from helped(own, inner)


def metrics() -> Iterator[str]:
    """Give every metric that the code makes."""
    yield "At `/metrics` of the [admin address](../operate/monitoring.md). Counters end"
    yield "in `_total` there; histograms have `_bucket`, `_count` and `_sum`. Memory,"
    yield "processor time and open files are in `process_…`, as of every program that"
    yield "Prometheus watches."
    yield ""
    yield "| metric | kind | what it counts | labels |"
    yield "|---|---|---|---|"
    alone = "Always 1, and nothing else is shown, while this node stands by."
    found = {*made(), (STANDING_BY, "gauge", alone, "")}
    for name, kind, words, labels in sorted(found):
        yield f"| `{name}` | {kind} | {cell(words)} | {cell(labels)} |"


MAKERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "counter": ("counter", ()),
    "gauge": ("gauge", ()),
    "histogram": ("histogram", ()),
    "Counter": ("counter", ()),
    "_counter": ("counter", ()),
    "_gauge": ("gauge", ()),
    "GaugeMetricFamily": ("gauge", ()),
    "Family": ("counter", LABELS),
}
"""What makes a metric: its kind, and the labels that it has in any case."""

CALLED = re.compile(rf"\b(?:{'|'.join(MAKERS)})\(")


def made() -> Iterator[tuple[str, str, str, str]]:
    """Find the calls that make a metric: name, kind, text, labels."""
    for folder in ("runtime", "actors", "connectors"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if CALLED.search(text):  # few modules do, and to parse all takes long
                yield from made_in(ast.parse(text))


def made_in(tree: ast.Module) -> Iterator[tuple[str, str, str, str]]:
    """Find those of one module."""
    nodes = list(ast.walk(tree))
    tuples = {
        to.id: node.value
        for node in nodes
        if isinstance(node, ast.Assign)
        for to in node.targets
        if isinstance(to, ast.Name)
    }
    gauges = {
        id(node.value)
        for node in nodes
        if isinstance(node, ast.keyword) and node.arg in {"heard", "up"}
    }
    for node in nodes:
        if isinstance(node, ast.Call):
            for name, kind, text, labels in of_call(node, tuples):
                yield name, "gauge" if id(node) in gauges else kind, text, labels


def of_call(
    call: ast.Call, tuples: Mapping[str, ast.expr]
) -> Iterator[tuple[str, str, str, str]]:
    """Read one call, if it makes a metric."""
    how = call.func
    called = getattr(how, "attr", "") or getattr(how, "id", "")
    if called not in MAKERS or len(call.args) < 2:
        return
    kind, own = MAKERS[called]
    name, text, *rest = call.args
    if isinstance(name, ast.Constant) and isinstance(text, ast.Constant):
        labels = [*own, *(x for each in rest for x in words_in(each, tuples))]
        if called.startswith("_") and not labels:
            labels = ["kind"]  # the default there
        yield str(name.value), kind, str(text.value), ", ".join(labels)


def words_in(labels: ast.expr, tuples: Mapping[str, ast.expr]) -> Iterator[str]:
    """Give the words of a tuple of labels, and of those that it is made of."""
    match labels:
        case ast.Tuple(elts=parts):
            for part in parts:
                yield from words_in(part, tuples)
        case ast.Starred(value=ast.Name(id=name)) | ast.Name(id=name):
            if name in tuples:
                yield from words_in(tuples[name], tuples)
        case ast.Constant(value=str(word)):
            yield word
        case _:
            pass


OPENAI = {
    "POST /v1/chat/completions": "Ask an agent, as OpenAI's API does.",
    "GET /v1/models": "List the agents as models.",
    "GET /v1/models/{name}": "Show one agent as a model.",
}
OPERATORS = {
    "GET /": "What is here, for somebody who opens it in a browser; needs no key.",
    "GET /healthz": "Whether the process answers; needs no key.",
    "GET /readyz": "Whether messages are taken, and if not, why (503); needs no key.",
    "GET /metrics": "All [metrics](metrics.md), for Prometheus.",
    "GET /actors": "The tree of actors; `?top=NAME`, and `?past=NAME` for more.",
}
OTHERS = {
    "POST /webhooks/{name}": "Begin a task, signed; only where `[webhooks.in]` is.",
    "GET, POST /platforms/{connector}": "What a chat platform tells, if it does by"
    " HTTP.",
    "GET, POST /platforms/{connector}/{account}": "The same, of one account.",
}
"""Ways whose handlers have no text of their own. A test compares them with those that
the servers have."""


SOCKET_EVENTS = {
    "connection_established": "A client has connected.",
    "authenticated": "Likewise; its key is known, if one is needed.",
    "channel_joined": "It joined a channel as it asked to.",
    "room_joined": "The same, under the older name.",
    "messageAck": "Its message is stored.",
    "messageError": "What it sent was not understood, or not taken.",
    "messageBroadcast": "Somebody said something in a channel that it joined.",
    "messageStreamChunk": "An answer grows.",
    "messageStreamError": "An answer that had begun will not be finished.",
    "messageComplete": "An agent has ended: with an answer, or without.",
    "messageDeleted": "A message was deleted.",
    "channelDeleted": "A channel was deleted.",
    "channelUpdated": "A channel was changed.",
    "channelCleared": "All messages of a channel were deleted.",
    "controlMessage": "Whether people may write now.",
    "log_stream": "A line of the log, to those who subscribed.",
    "log_subscription_confirmed": "It gets lines of the log, or no more.",
    "log_filters_updated": "It gets other lines of the log.",
}
"""What a client is told over Socket.IO; a test compares it with the code."""


class Recorder:
    """Stands for what makes the routes of the ElizaOS API, and keeps them."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str, str, str]] = []

    def route(
        self,
        method: str,
        path: str,
        scope: str | None,
        handle: Any,
        **_: object,
    ) -> None:
        """Keep one: path, method, right, what it does."""
        words = (handle.__doc__ or "").partition("\n\n")[0]
        self.found.append((path, method, scope or "", words))


def eliza() -> list[tuple[str, str, str, str]]:
    """Give the ways of the ElizaOS API: path, method, right, what it does."""
    recorder = Recorder()
    package = importlib.import_module("connectors.web.eliza.routes")
    for found in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{found.name}")
        for each in vars(module).values():
            is_own = getattr(each, "__module__", "") == module.__name__
            if isinstance(each, type) and is_own and hasattr(each, "routes"):
                # Its services are not needed to name its ways.
                made: Any = object.__new__(cast("type[Any]", each))
                made.routes(recorder)
    return sorted(set(recorder.found))


def http() -> Iterator[str]:
    """Give every way that programs use; those of the page are for browsers."""
    for heading, words, ways in (
        (
            '`kind = "http"`: OpenAI\'s API',
            "[How to use it](../connect/openai-api.md), and its errors.",
            {**OPENAI, **OPERATORS, **OTHERS},
        ),
        (
            "The admin address",
            "Of each `callboard serve`; [more](../operate/monitoring.md).",
            OPERATORS,
        ),
    ):
        yield from (
            f"## {heading}",
            "",
            words,
            "",
            "| way | what it does |",
            "|---|---|",
        )
        yield from (f"| `{way}` | {told} |" for way, told in ways.items())
        yield ""
    yield from ('## `kind = "web"`: the ElizaOS API', "")
    yield "[How to use it](../connect/elizaos-api.md), with the Socket.IO events. The"
    yield "right is what the key's `scopes` must have; without one no key is needed."
    yield from ("", "| way | right | what it does |", "|---|---|---|")
    for path, method, scope, words in eliza():
        yield f"| `{method} {path}` | {scope} | {cell(words)} |"
    yield from ("", "## Elsewhere", "")
    yield "A [plain WebSocket](../connect/websocket.md#frames) has frames. The ways of"
    yield "the [page](../connect/web-page.md) are for browsers and may change."


def events() -> Iterator[str]:
    """Give every event that another program or a hook is told of."""
    yield from ("## Webhooks", "")
    yield "Sent to the addresses in `[webhooks.out]`:"
    yield "[how](../connect/webhooks.md#outgoing). The body has `type`, `timestamp` and"
    yield "`data`; fields that do not apply are left out. Texts are sent only with"
    yield "`texts = true`."
    yield from ("", "| type | when | `data` | texts |", "|---|---|---|---|")
    for name, shape in EVENTS.items():
        fields, texts = ", ".join(shape.fields), ", ".join(shape.texts)
        yield f"| `{name}` | {shape.when} | {fields} | {texts} |"
    yield from ("", "## Hooks", "")
    named = ", ".join(f"`{name}`" for name in get_args(Event))
    yield f"Your own code is asked, or told, of {named};"
    yield "[how](../agents/hooks.md#events)."
    for title, struct in (("`about`", HookSubject), ("`ended`", FinishedTurn)):
        yield from ("", f"{title} has:", "", "| field | what it is |", "|---|---|")
        told = field_texts(struct)
        for field in structs.fields(struct):
            yield f"| `{field.encode_name}` | {cell(told.get(field.name, ''))} |"
    yield from ("", "## Socket.IO", "")
    yield "What clients of the [ElizaOS API](../connect/elizaos-api.md) are told."
    yield from ("", "| event | when |", "|---|---|")
    yield from (f"| `{name}` | {when} |" for name, when in SOCKET_EVENTS.items())


WRITERS: Mapping[str, tuple[str, Callable[[], Iterator[str]]]] = {
    "settings.md": ("All settings", settings),
    "commands.md": ("All commands", commands),
    "metrics.md": ("All metrics", metrics),
    "http.md": ("HTTP", http),
    "events.md": ("Events", events),
}
"""The title of each page by the name of its file, and what gives its lines."""


def page(name: str) -> str:
    """Give the text of a page by the name of its file."""
    title, lines = WRITERS[name]
    return "\n".join((f"# {title}", "", MADE, "", *lines(), ""))


if __name__ == "__main__":
    for file in WRITERS:
        written = page(file)
        (PAGES / file).write_text(written, encoding="utf-8")
        sys.stdout.write(f"docs/reference/{file}: {written.count(chr(10)):,} lines\n")
