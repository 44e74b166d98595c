"""Writes the settings file of `callboard init`. Pure: answers in, TOML out.

The tables of a platform are those of its example file, with the agent's name put in.
Where something is still missing they are written as comments, so that the file is right
as it is.
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

from connectors.commands.init.choices import (
    EMBEDDED,
    HTTP,
    OLLAMA,
    PAGE,
    TEMPLATES,
    TERMINAL,
)
from runtime.config.messages import toml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from connectors.commands.init.choices import ModelChoice, SettingsPlan

SCRIPT = "embedded_script.toml"
MATRIX = "matrix"
EXAMPLE_AGENT = "anna"
PLACEHOLDER = re.compile(r"example\.(?:org|com|net)\b")
YOURS = re.compile(r"^(\w+) = .*# yours\b")
"""A value that an example can only make up."""

OWNERS = re.compile(r'^(?:# ?)?(owners = \[".+)$')
WIDTH = 86
"""Of comments, in characters."""

HEADER = re.compile(r"^\[+\s*([^\]]+?)\s*\]+")
OWN_TOOLS = ("calculate", "clock")

OLLAMA_WINDOW = 32_768
"""Tokens. The server's own bound is small, and what is longer it drops silently."""


def settings_text(
    plan: SettingsPlan,
    blocks: Mapping[str, str],
    why: Mapping[str, str],
    owners: tuple[str, ...] = (),
) -> str:
    """Write the whole file.

    Args:
        plan: the answers.
        blocks: tables of platforms, by kind.
        why: platforms that are left out for now, and what they lack.
        owners: lines that show how owners are named.
    """
    lines = [
        "# Settings of Callboard, made by `callboard init`. Change what you like:",
        "# `callboard config check` says whether it is right, `callboard doctor`",
        "# whether it works, `callboard config explain` what else most companies set.",
        "",
        f"default_agent = {toml(plan.agent)} # answers when nobody is named",
        *owners,
        "",
        "[store]",
        "# Starts at the folder of this file, wherever Callboard is started.",
        'path = "var/callboard.db"',
        "",
        *model_lines(plan.choice),
        *people_lines(plan, blocks, why),
        *agent_lines(plan),
    ]
    return "\n".join(lines) + "\n"


def owner_line(text: str, plan: SettingsPlan) -> str:
    """Find how an example file names owners; as a comment, empty if it does not."""
    for line in text.splitlines():
        if match := OWNERS.match(line):
            domain = plan.matrix_id.partition(":")[2]
            known = PLACEHOLDER.sub(domain, match[1]) if domain else match[1]
            return f"# {known}"
    return ""


def model_lines(choice: ModelChoice) -> Iterator[str]:
    """Write the model's table."""
    provider = choice.provider
    yield "[models.main]"
    yield f"kind = {toml(provider.kind)}"
    if provider.name == EMBEDDED:
        yield "# No model is asked: it follows the rules in this file."
        yield f"script = {toml(SCRIPT)}"
        yield ""
        return
    yield f"model = {toml(choice.model)}"
    base_url = choice.base_url or provider.base_url
    if base_url:
        yield f"base_url = {toml(base_url)}"
    if choice.key is not None:
        yield "# Where the key is found. The key itself never stands in this file."
        yield f"api_key = {{ {choice.key.source} = {toml(choice.key.place)} }}"
    if not choice.takes_tools:
        yield "takes_tools = false # it refused them when it was tried"
    if provider.name == OLLAMA:
        yield "# Tokens. What is longer the server would drop without a word."
        yield f"context_tokens = {OLLAMA_WINDOW:_}"
    yield ""


def people_lines(
    plan: SettingsPlan, blocks: Mapping[str, str], why: Mapping[str, str]
) -> Iterator[str]:
    """Write where people write."""
    for kind in plan.people:
        if kind == TERMINAL:
            yield "[connectors.terminal] # used by `callboard chat`"
            yield 'kind = "terminal"'
        elif kind == HTTP:
            yield "# Used by `callboard serve`; only this machine reaches it. To let"
            yield '# others in, set host, and api_key = { env = "CALLBOARD_API_KEY" }.'
            yield "[connectors.http]"
            yield 'kind = "http"'
            yield "port = 8080"
        elif kind in why:
            reason = f"{kind} is left out for now: {why[kind]}"
            yield from (f"# {line}" for line in textwrap.wrap(reason, WIDTH))
            yield "# Then take away the `#` of these lines; more: config/default.toml."
            yield "#"
            yield from (f"# {line}".rstrip() for line in blocks[kind].splitlines())
        else:
            if kind == PAGE:
                yield "# For `callboard serve`; `callboard login` lets a browser in."
            yield from blocks[kind].splitlines()
        yield ""


def agent_lines(plan: SettingsPlan) -> Iterator[str]:
    """Write the agents' tables."""
    yield f"[agents.{plan.agent}]"
    yield 'model = "main"'
    yield "# Who it is stands in this folder; a change is in its next answer."
    yield f"persona = {toml(f'agents/{plan.agent}')}"
    yield f"tools = {toml(OWN_TOOLS)} # all: docs/agents/tools.md"
    if plan.others:
        names = tuple(name for name, _ in plan.others)
        yield f"delegates = {toml(names)} # may be handed work; others: @name"
    for name, template in plan.others:
        yield ""
        yield f"[agents.{name}]"
        yield 'model = "main"'
        yield f"description = {toml(TEMPLATES[template].description)}"
        yield f"persona = {toml(f'agents/{name}')}"
        yield f"tools = {toml(OWN_TOOLS)}"


def example_block(text: str, kind: str, plan: SettingsPlan) -> str:
    """Take a platform's tables from its example file, with the agent's name in.

    Args:
        text: the example file.
        kind: the connector's, which is also its name there.
        plan: the answers.
    """
    wanted = (f"connectors.{kind}", f"presence.connectors.{kind}")
    chosen: list[str] = []
    for table in tables_of(text):
        name = header_name(table)
        if any(name == each or name.startswith(f"{each}.") for each in wanted):
            chosen.append(table.strip())
    return with_answers("\n\n".join(chosen), plan)


def tables_of(text: str) -> Iterator[str]:
    """Cut a file into its tables, each with the comments that stand right above it."""
    above: list[str] = []
    table: list[str] = []
    for line in text.splitlines():
        if HEADER.match(line):
            yield "\n".join(table)
            table = [*above, line]
            above = []
        elif line.startswith("#"):
            above.append(line)
        else:
            table += [*above, line]
            above = []
    yield "\n".join([*table, *above])


def header_name(table: str) -> str:
    """Find the name of a table; empty: it is what stands before all tables."""
    for line in table.splitlines():
        match = HEADER.match(line)
        if match:
            return match[1]
    return ""


def with_answers(block: str, plan: SettingsPlan) -> str:
    """Put the agent's name and account into an example."""
    if plan.matrix_id:
        domain = plan.matrix_id.partition(":")[2]
        block = block.replace("@anna:example.org", plan.matrix_id)
        block = block.replace("https://matrix.example.org", f"https://{domain}")
    return re.sub(rf'(?<=["\.]){EXAMPLE_AGENT}(?=["\.\]])', plan.agent, block)


def lacking(block: str) -> str:
    """Say what an example still needs; empty: nothing that can be seen."""
    lines = [line for line in block.splitlines() if not line.startswith("#")]
    made_up = [match[1] for line in lines if (match := YOURS.match(line))]
    if any(PLACEHOLDER.search(line) for line in lines):
        made_up.insert(0, "addresses and accounts")
    if made_up:
        return f"it needs {' and '.join(made_up)} of yours instead of the example's"
    return ""


def is_called(example: str) -> bool:
    """Whether a platform calls us, by the HTTP server that its example has."""
    return any(header_name(each) == f"connectors.{HTTP}" for each in tables_of(example))


def persona_text(text: str, agent: str) -> str:
    """Put an agent's name into a template's text."""
    return text.replace("{Name}", agent[:1].upper() + agent[1:])
