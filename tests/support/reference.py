"""Writes the pages of docs/reference from the code: settings, commands, metrics.

`python -m tests.support.reference` writes them; a test fails while one is not true.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from msgspec import inspect as shapes

from connectors.cli import callboard
from connectors.settings.load import settings_type
from connectors.settings.schema import (
    COMMON,
    explained,
    field_texts,
    key_line,
    level_of,
    tables,
)

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "reference"
MADE = "<!-- python -m tests.support.reference writes this page from the code. -->"
WIDTH = 100


TABLES = {
    "accounts.x": "A provider's key, which models name.",
    "models.x": "A model that agents may have: who runs it, and which one it is.",
    "connectors.x": "Where people write: a chat platform, the page, HTTP, …",
    "routes": "Which agent hears which messages, where names do not say it.",
    "access": "Who may write at all.",
    "budgets": "What may be spent in a day or month, and what happens then.",
}
"""What common tables are for."""


def pages() -> dict[str, str]:
    """Give the text of each page by the name of its file."""
    return {
        "settings.md": page("Settings, all of them", settings()),
        "commands.md": page("Commands", commands()),
        "metrics.md": page("Metrics", metrics()),
    }


def page(title: str, lines: Iterator[str]) -> str:
    """Put a page together."""
    return "\n".join((f"# {title}", "", MADE, "", *lines, ""))


def cell(text: str) -> str:
    """Write a text as a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def code(text: str) -> str:
    """Write a text as code in a cell of a table."""
    return f"`{text}`".replace("|", "\\|") if text else ""


def settings() -> Iterator[str]:
    """Give all settings by table, the common ones first."""
    yield "Few companies need more than these:"
    yield ""
    yield "| setting | what it does |"
    yield "|---|---|"
    for key in COMMON:
        words = explained(key.split("."))[0].words or TABLES[key]
        shown = key.replace(".x", ".<name>")
        yield f"| `{shown}` | {cell(words)} |"
    yield ""
    yield "All others have a default that was chosen with care. *Expert* are those that"
    yield "only somebody who measures should change. `config/default.toml` has the"
    yield "reasons; `callboard config explain KEY` tells what may be written."
    seen: set[str] = set()
    for table, struct in each_table():
        heading = f"[{'.'.join(table)}]" if table else "The top of the file"
        kind = f', kind = "{struct.tag}"' if struct.tag is not None else ""
        if heading + kind in seen:
            continue
        seen.add(heading + kind)
        yield from ("", f"## `{heading}`{kind}" if table else f"## {heading}", "")
        yield "| key | as by default | what it does | for |"
        yield "|---|---|---|---|"
        texts = field_texts(struct.cls)
        for field in struct.fields:
            level = level_of((*table, field.encode_name))
            shown = cut(key_line(field))
            words = cell(texts.get(field.name, ""))
            yield f"| `{field.encode_name}` | {code(shown)} | {words} | {level} |"


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
    yield "in `_total` there; histograms have `_bucket`, `_count` and `_sum`."
    yield ""
    yield "| metric | kind | what it counts | labels |"
    yield "|---|---|---|---|"
    for name, kind, words, labels in sorted(set(made())):
        yield f"| `{name}` | {kind} | {cell(words)} | {cell(labels)} |"


def made() -> Iterator[tuple[str, str, str, str]]:
    """Find the calls that make a metric: name, kind, text, labels."""
    for folder in ("runtime", "actors", "connectors"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    yield from of_call(node)


def of_call(call: ast.Call) -> Iterator[tuple[str, str, str, str]]:
    """Read one call, if it makes a metric."""
    how = call.func
    if not isinstance(how, ast.Attribute) or len(call.args) < 2:
        return
    name, text, *rest = call.args
    is_metric = how.attr in {"counter", "gauge", "histogram"}
    if is_metric and isinstance(name, ast.Constant) and isinstance(text, ast.Constant):
        labels = rest[0] if rest else None
        items = labels.elts if isinstance(labels, ast.Tuple) else []
        told = [str(x.value) for x in items if isinstance(x, ast.Constant)]
        yield str(name.value), how.attr, str(text.value), ", ".join(told)


if __name__ == "__main__":
    for file, written in pages().items():
        (PAGES / file).write_text(written, encoding="utf-8")
        sys.stdout.write(f"docs/reference/{file}: {written.count(chr(10)):,} lines\n")
