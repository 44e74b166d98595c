"""Proves that every tool keeps what the port `Tool` promises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
import trio
from hypothesis import given, strategies as st

from actors.collaboration.tools import Collaborate, ConsultMany
from actors.config.collaboration import CollaborationConfig
from actors.messages.inbound import Address, ToolCall, ToolContext
from actors.ports import Tool
from connectors.config.tools import WorkspaceConfig
from connectors.fetch.messages import Fetched, FetchRequest
from connectors.sandbox.linux import landlock
from connectors.sandbox.orders import Means
from connectors.sandbox.plan import Standing, Territory
from connectors.sandbox.process import LaunchingSandbox
from connectors.tools.calculate import CalculateTool
from connectors.tools.clock import ClockTool
from connectors.tools.run_shell import RunShellTool
from connectors.tools.web.http_fetch import HttpFetchTool
from connectors.tools.web.web_search import Hit, WebSearchTool
from connectors.tools.workspace.files import (
    Desks,
    ListFilesTool,
    ReadFileTool,
    SendFileTool,
    WorkspaceEnclosures,
    WriteFileTool,
)
from tests.fakes.company.company import TrioClock
from tests.fakes.company.minded import memory_tools
from tests.fakes.memory.memory import FakeMemory
from tests.fakes.store.in_memory import MemoryStore
from tests.fakes.tools.colleagues import Agreeable
from tests.fakes.tools.sent_files import SentFiles


async def fetch(request: FetchRequest) -> Fetched:
    """Give the same page at every address."""
    await trio.lowlevel.checkpoint()
    return Fetched(
        url=request.url,
        status=200,
        headers={"content-type": "text/html"},
        body=b"<p>words",
        media_type="text/html",
    )


class Engine:
    """A search engine that finds one page."""

    async def search(self, query: str, count: int, owner: str = "") -> tuple[Hit, ...]:
        assert owner
        await trio.lowlevel.checkpoint()
        return (Hit(query, "https://site.example/"),)[:count]


FOLDER = TemporaryDirectory()
"""Made here, as the lists below are made before any fixture."""

DESKS = Desks(WorkspaceConfig(path=FOLDER.name))
ABI = landlock.abi()
MEANS = Means(ABI, is_filtered=bool(ABI), is_brokered=bool(ABI))
SANDBOX = LaunchingSandbox(
    Standing(kind="landlock", abi=ABI, features={}), MEANS, Territory()
)
TOOLS: list[Tool] = [
    CalculateTool(),
    ClockTool(lambda: 1_700_000_000.0),
    HttpFetchTool(fetch, 3_000),
    ListFilesTool(DESKS),
    WriteFileTool(DESKS),
    ReadFileTool(DESKS),
    RunShellTool(SANDBOX, DESKS),
    WebSearchTool(Engine(), 5),
    Collaborate(Agreeable(), CollaborationConfig()),
    ConsultMany(Agreeable(), CollaborationConfig()),
    SendFileTool(WorkspaceEnclosures(DESKS, SentFiles())),
    *memory_tools(lambda _: FakeMemory(), TrioClock(), MemoryStore()).values(),
]
GOOD = {
    "calculate": b'{"expression": "1 + 1"}',
    "collaborate": b'{"agent": "ben", "message": "tea?", "turns": 2}',
    "consult": b'{"agents": ["ben", "carl"], "message": "tea?"}',
    "clock": b'{"timezone": "UTC"}',
    "run_shell": b'{"command": "echo here; pwd"}',
    "http_fetch": b'{"url": "https://site.example/"}',
    "list_files": b"{}",
    "memory_search": b'{"query": "tea"}',
    "save_memory": b'{"text": "Likes tea"}',
    "read_file": b'{"path": "a/b.txt"}',
    "send_file": b'{"path": "a/b.txt", "caption": "words"}',
    "web_search": b'{"query": "callboard"}',
    "write_file": b'{"path": "a/b.txt", "content": "words"}',
}
CONTEXT = ToolContext(
    agent="ben", correlation_id="c", address=Address("terminal", "1"), sender_id="sam"
)

# JSON of the right shape reaches further into a tool than any bytes do.
texts = st.text(max_size=30) | st.text("0123456789+-*/%().,e^ sqrtpi", max_size=60)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
names = st.sampled_from(
    ["expression", "timezone", "url", "path", "content", "query", "text", "x"]
)
shaped = st.dictionaries(names, scalars | st.lists(scalars, max_size=3), max_size=3)
garbage = st.binary(max_size=100) | shaped.map(msgspec.json.encode)


@pytest.fixture(scope="module", autouse=True)
def folder() -> Iterator[None]:
    """Have something in the agent's folder, and remove it at the end."""
    (Path(FOLDER.name) / "ben" / "a").mkdir(parents=True)
    (Path(FOLDER.name) / "ben" / "a" / "b.txt").write_text("words")
    yield
    FOLDER.cleanup()


@pytest.fixture(params=TOOLS, ids=lambda tool: type(tool).__name__)
def tool(request: pytest.FixtureRequest) -> Tool:
    chosen: Tool = request.param
    return chosen


def calling(tool: Tool, arguments: bytes) -> ToolCall:
    return ToolCall("id1", tool.spec.name, arguments)


class Schema(msgspec.Struct):
    """What providers want a tool's schema to be."""

    type: str
    properties: dict[str, dict[str, object]]
    required: list[str]
    additionalProperties: bool  # noqa: N815  JSON schema's name


def test_the_spec_is_constant_and_a_schema_of_an_object(tool: Tool) -> None:
    spec = tool.spec
    schema = msgspec.json.decode(spec.parameters, type=Schema)
    assert tool.spec == spec
    assert spec.name in GOOD
    assert spec.description
    assert schema.type == "object"
    assert not schema.additionalProperties
    assert set(schema.required) <= set(schema.properties)
    assert all("type" in each for each in schema.properties.values())
    assert b"$ref" not in spec.parameters
    assert b"$defs" not in spec.parameters


async def test_good_arguments_give_words(tool: Tool) -> None:
    result = await tool.run(calling(tool, GOOD[tool.spec.name]), CONTEXT)
    assert not result.is_error
    assert result.text


@pytest.mark.parametrize(
    "arguments",
    [
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b'{"unknown": 1}',
        b'{"expression": 1, "timezone": 1}',
        b"[" * 100_000,
        b'{"expression": "' + b"1+" * 100_000 + b'1"}',
        b'{"timezone": "../../../etc/passwd"}',
    ],
)
async def test_bad_arguments_are_a_result_that_says_why(
    tool: Tool, arguments: bytes
) -> None:
    result = await tool.run(calling(tool, arguments), CONTEXT)
    assert result.is_error
    assert 10 < len(result.text) < 500


@given(arguments=garbage)
async def test_no_arguments_make_it_fail(arguments: bytes) -> None:
    for tool in TOOLS:
        result = await tool.run(calling(tool, arguments), CONTEXT)
        assert 0 < len(result.text) < 3000


async def test_it_can_be_cancelled(tool: Tool) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await tool.run(calling(tool, GOOD[tool.spec.name]), CONTEXT)
    assert scope.cancelled_caught


async def test_calls_at_once_do_not_mix(tool: Tool) -> None:
    alone = await tool.run(calling(tool, GOOD[tool.spec.name]), CONTEXT)
    texts: list[str] = []

    async def run() -> None:
        result = await tool.run(calling(tool, GOOD[tool.spec.name]), CONTEXT)
        texts.append(result.text)

    async with trio.open_nursery() as nursery:
        for _ in range(64):
            nursery.start_soon(run)
    assert texts == [alone.text] * 64
