"""Proves that a change of the settings touches those concerned, and nobody else."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar

import httpx
import msgspec
import pytest
import trio

from actors import names
from actors.journal.commits import as_accept
from actors.messages.inbound import Address
from actors.people.owners import OwnerWrote
from actors.transport import Listening
from connectors.app.app import App, open_app
from connectors.app.kit import PARTS, Kit, Workbench
from connectors.app.nodes import CompanyNode, CompanySeat
from connectors.app.reload.apply import TakingOver
from connectors.app.reload.reload import (
    MENDED,
    REFUSED,
    WAITING,
    Reloading,
    SettingsSource,
    Ways,
)
from connectors.app.reload.rules import Step
from connectors.chat.platforms import MakeTransport, TransportParts, serving
from connectors.chat.telegram.platform import TelegramConfig
from connectors.chat.terminal.platform import TerminalConfig, with_terminal
from connectors.config.app import AppConfig
from connectors.settings.load import load_app
from connectors.web.openai.transport import HttpTransport
from runtime.errors import SettingsError
from runtime.nodes.rows import Fence
from runtime.postgresql.nodes import NodeDesk
from runtime.postgresql.server import PostgresqlServer
from runtime.store.rows import Commit
from runtime.supervision.supervisor import RestartChild, StopChild
from runtime.telemetry.logs import Redactor
from tests.connectors.app.test_reloading import write
from tests.fakes.chat.transport import FakeTransport
from tests.support.reload_bed import free_port

SIDE = '[connectors.side]\nkind = "http"\nport = {port}\n{more}\n'
SERVER = '[mcpServers.{name}]\ncommand = "/bin/cat"\ncall_timeout = {seconds}\n'
CLIENTS = """
[memory]
embedder = "own"

[embedders.own]
kind = "ollama"
model = "tiny"
base_url = "http://127.0.0.1:9"

[media]
transcriber = { model = "tiny", base_url = "http://127.0.0.1:9" }
speaker = { model = "tiny", voice = "v", base_url = "http://127.0.0.1:9" }
"""


@dataclass(frozen=True)
class Bench:
    """A company with a fake platform beside its HTTP servers."""

    folder: Path
    app: App
    reloading: Reloading
    platform: FakeTransport = field(default_factory=FakeTransport)

    async def change(self, more: str = "") -> str | None:
        write(self.folder, more)
        return await self.reloading.reload()

    def generations(self) -> dict[str, tuple[int, int]]:
        """Give by name which incarnation of which actor runs.

        But for workers that end by themselves a moment after the turn that they serve.
        """
        return {
            name: (id(cell), cell.generation)
            for name, cell in self.app.system.kernel.names.items()
            if "/recollections/" not in name
        }

    async def status(self, port: int) -> int:
        """Ask a server of the company whether it is there."""
        async with httpx.AsyncClient() as client:
            return (await client.get(f"http://127.0.0.1:{port}/healthz")).status_code


class Broken(FakeTransport):
    """A platform of many accounts, of which nobody can say which."""

    trouble = ""

    def __init__(self, _parts: TransportParts) -> None:
        super().__init__("zz")

    @property
    def listeners(self) -> dict[str, Listening]:
        raise LookupError("no such platform")


class Back(FakeTransport):
    """A platform on which somebody writes as soon as it is there."""

    made: ClassVar[list[Back]] = []

    def __init__(self, _parts: TransportParts) -> None:
        super().__init__("zz")
        self.made.append(self)
        self.write("hello")


class Noting(Workbench):
    """Notes which parts that were made are closed."""

    closed: ClassVar[list[str]] = []

    async def make(self, config: AppConfig, parts: tuple[Step, ...] = PARTS) -> Kit:
        kit = await super().make(config, parts)
        for part in parts:
            kit.stacks[part].callback(self.closed.append, part)
        return kit


@asynccontextmanager
async def open_bench(
    folder: Path, more: str = "", zz: MakeTransport = Broken
) -> AsyncGenerator[Bench]:
    platform = FakeTransport()

    def serves(config: AppConfig) -> Mapping[str, MakeTransport]:
        further: dict[str, MakeTransport] = {"fake": lambda _: platform}
        if "zz" in config.connectors:
            further["zz"] = zz
        return serving(config) | further

    load = partial(load_app, write(folder, more), {})
    source = SettingsSource(load(), load, Redactor())
    config = source.settings.value
    async with open_app(config, serves(config)) as app:
        reloading = Reloading(app, config, source, Ways(serves=serves))
        yield Bench(folder, app, reloading, platform)


async def test_a_connector_comes_changes_and_goes(tmp_path: Path) -> None:
    port, other = free_port(), free_port()
    async with open_bench(tmp_path) as bench:
        before = bench.generations()
        assert await bench.change(SIDE.format(port=port, more="")) == "applied"
        side = bench.app.transports["side"]
        assert isinstance(side, HttpTransport)
        await side.wait_listening()
        assert await bench.status(port) == 200
        assert await bench.change(SIDE.format(port=other, more="")) == "applied"
        moved = bench.app.transports["side"]
        assert isinstance(moved, HttpTransport)
        await moved.wait_listening()
        assert await bench.status(other) == 200
        with pytest.raises(httpx.ConnectError):
            await bench.status(port)
        assert await bench.change() == "applied"
        with pytest.raises(httpx.ConnectError):
            await bench.status(other)
        assert "side" not in bench.app.company.services.accounts
        assert bench.generations().items() >= before.items()


async def test_a_node_knows_whose_the_chats_of_a_new_connector_are_at_once(
    tmp_path: Path,
) -> None:
    desk = NodeDesk(PostgresqlServer("host=/nowhere"), "a", 1.0)  # nobody asks it
    async with open_bench(tmp_path) as bench:
        node = CompanyNode(bench.app.config, desk, bytes(32))
        duties = node.new_duties()
        bench.app.seat = CompanySeat(Fence("a", 1, 0, ()), {}, node, duties)
        for more, is_there in (
            (SIDE.format(port=free_port(), more=""), True),
            ("", False),
        ):
            assert await bench.change(more) == "applied"
            assert duties.is_shared("side") == is_there


async def test_packages_that_a_connector_of_another_node_needs_here_are_missed_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "connectors.chat.telegram.transport", None)
    desk = NodeDesk(PostgresqlServer("host=/nowhere"), "a", 1.0)  # nobody asks it
    async with open_bench(tmp_path) as bench:
        before = bench.app.config
        node = CompanyNode(before, desk, bytes(32))
        bench.app.seat = CompanySeat(Fence("a", 1, 0, ()), {}, node, node.new_duties())
        bot = TelegramConfig(accounts={})
        target = msgspec.structs.replace(
            before, connectors={**before.connectors, "bot": bot}
        )
        steps: frozenset[Step] = frozenset({"connectors"})
        with pytest.raises((SettingsError, ModuleNotFoundError)):
            await TakingOver(bench.app).carry_out(target, steps, ())
        assert bench.app.config is before


async def test_an_address_that_is_taken_changes_nothing(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        http = bench.app.transports["http"]
        assert isinstance(http, HttpTransport)
        _, port = await http.wait_listening()
        text = SIDE.format(port=port, more="") + "[limits]\nmax_open = 7\n"
        assert await bench.change(text) == "refused"
        assert set(bench.app.transports) == {"http", "fake"}
        assert bench.app.company.services.limits.max_open == 5000
        assert await bench.status(port) == 200


async def test_settings_that_failed_halfway_are_gone_when_they_are_taken_back(
    tmp_path: Path,
) -> None:
    port = free_port()
    side = SIDE.format(port=port, more="")
    broken = "[connectors.zz]\nkind = 'terminal'\n"
    async with open_bench(tmp_path) as bench:
        text = f"{side}{broken}[limits]\nmax_open = 7\n"
        assert await bench.change(text) == "refused"
        assert "side" in bench.app.transports, "the change was begun"
        assert bench.app.company.services.limits.max_open == 7
        assert await bench.change() == "applied"
        assert set(bench.app.transports) == {"http", "fake"}
        assert bench.app.company.services.limits.max_open == 5000
        assert not [x for x in bench.generations() if x.endswith(("/side", "/zz"))]
        with pytest.raises(httpx.ConnectError):
            await bench.status(port)


async def test_what_was_left_of_a_connector_goes_before_what_comes_new(
    tmp_path: Path,
) -> None:
    async with open_bench(tmp_path, zz=Back) as bench:
        left = FakeTransport("zz").write("hello", key="left")
        left = msgspec.structs.replace(left, id="left", correlation_id="left")
        await bench.app.store.commit(Commit(at=1.0, accepts=(as_accept(left, 1.0),)))
        assert await bench.change("[connectors.zz]\nkind = 'terminal'\n") == "applied"
        first, second = await Back.made[-1].wait_deliveries(2)
        assert (first.correlation_id, second.correlation_id) == ("left", "zz-1")


async def test_what_was_made_for_settings_that_fail_is_closed(tmp_path: Path) -> None:
    text = "[fetch]\ntimeout = 7\n[[budgets]]\nscope = 'all'\nhard_tokens = 1000\n"
    async with open_bench(tmp_path) as bench:
        app = bench.app
        app.bench = noting = Noting(**vars(app.bench))
        root = app.system.find(names.ROOT)
        assert root is not None
        await root.ask(StopChild("models"))
        for tries in (1, 2):
            await bench.change(text)
            assert noting.closed == ["media", "tools"] * tries
        await root.ask(RestartChild("models"))
        assert await bench.change(text) == "applied"
        assert noting.closed == ["media", "tools"] * 2, "what they replace is put aside"


async def test_all_that_was_made_is_closed_when_closing_is_cut_off(
    tmp_path: Path,
) -> None:
    async with open_bench(tmp_path) as bench:
        workbench, closed = bench.app.bench, list[str]()
        kit = await workbench.make(bench.app.config)
        for part in PARTS:
            kit.stacks[part].callback(closed.append, part)
            kit.stacks[part].push_async_callback(trio.lowlevel.checkpoint)
        with trio.CancelScope() as scope:
            scope.cancel()
            await workbench.discard(kit)
        assert scope.cancelled_caught
        assert sorted(closed) == sorted(PARTS)


async def test_agents_get_all_that_the_settings_name(tmp_path: Path) -> None:
    async with open_bench(tmp_path, CLIENTS) as bench:
        kit = await bench.app.bench.make(bench.app.config)
        made = (kit.transcriber, kit.speaker, kit.memory, kit.media)
        await bench.app.bench.discard(kit)
    assert None not in made


async def test_every_client_that_was_opened_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[httpx.AsyncClient] = []
    open_client = httpx.AsyncClient.__init__

    def note(client: httpx.AsyncClient, *given: object, **named: object) -> None:
        open_client(client, *given, **named)  # type: ignore[arg-type]
        opened.append(client)

    monkeypatch.setattr(httpx.AsyncClient, "__init__", note)
    async with open_bench(tmp_path, CLIENTS) as bench:
        clients = len(opened)
        assert clients >= 3
        assert await bench.change(CLIENTS.replace("tiny", "large")) is not None
        assert len(opened) > clients
    assert all(each.is_closed for each in opened)


async def test_who_may_write_changes_without_closing_the_door(tmp_path: Path) -> None:
    port, access = free_port(), "access = { allowed = ['zoe'] }"
    async with open_bench(tmp_path, SIDE.format(port=port, more="")) as bench:
        side, services = bench.app.transports["side"], bench.app.company.services
        assert services.accounts["side"].policy is None
        assert await bench.change(SIDE.format(port=port, more=access)) == "applied"
        assert bench.app.transports["side"] is side
        assert services.accounts["side"].policy is not None


async def test_only_the_server_of_tools_that_changed_is_restarted(
    tmp_path: Path,
) -> None:
    one = SERVER.format(name="one", seconds=5)
    two, slower = (SERVER.format(name="two", seconds=x) for x in (5, 6))
    async with open_bench(tmp_path) as bench:
        assert bench.app.system.find(f"{names.ROOT}/tools/servers/one") is None
        assert await bench.change(one + two) == "applied"
        before = bench.generations()
        above = f"{names.ROOT}/tools/servers"
        started = [x for name, (_, x) in before.items() if name.startswith(above)]
        assert set(started) == {0}, "each is started once"
        assert await bench.change(one + slower) == "applied"
        after = bench.generations()
        assert before[f"{above}/one"] == after[f"{above}/one"]
        assert before[f"{above}/two"] != after[f"{above}/two"]
        assert await bench.change(one) == "applied"
        assert f"{above}/two" not in bench.generations()


async def test_memory_goes_and_comes_without_its_agent(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        before, memory = bench.generations(), names.memory("anna")
        assert memory in before
        assert await bench.change("[memory]\nenabled = false\n") == "applied"
        assert memory not in bench.generations()
        assert not bench.app.company.roster.persona("anna").remembers
        assert await bench.change() == "applied"
        after = bench.generations()
        assert memory in after
        assert before[names.agent("anna")] == after[names.agent("anna")]


async def test_a_changed_prompt_restarts_nobody(tmp_path: Path) -> None:
    more = '[agents.mia]\nprompt = "{}"\n'
    async with open_bench(tmp_path, more.format("One.")) as bench:
        before, stock = bench.generations(), bench.app.stock.current
        assert await bench.change(more.format("Two.")) == "applied"
        assert bench.app.company.roster.persona("mia").config.prompt == "Two."
        assert bench.generations() == before
        assert bench.app.stock.current is stock


async def test_a_persona_folder_is_taken_up_and_left(tmp_path: Path) -> None:
    (tmp_path / "mia").mkdir()
    (tmp_path / "mia" / "SOUL.md").write_text("I am calm.", encoding="utf-8")
    more = '[agents.mia]\nprompt = "One."\n'
    async with open_bench(tmp_path, more) as bench:
        read = bench.app.personas.reading("mia")
        assert await bench.change(f'{more}persona = "mia"\n') == "applied"
        assert read().soul == "I am calm."
        assert await bench.change(more) == "applied"
        assert read().soul == ""


async def test_a_skill_that_is_added_is_there(tmp_path: Path) -> None:
    (tmp_path / "skills").mkdir()
    more = '[skills]\nfolders = ["skills"]\n[agents.mia]\nskills = ["*"]\n'
    async with open_bench(tmp_path, more) as bench:
        await bench.reloading.look_beside()
        skill = tmp_path / "skills" / "baking"
        skill.mkdir()
        text = "---\nname: baking\ndescription: Bakes bread.\n---\nKnead it.\n"
        (skill / "SKILL.md").write_text(text, encoding="utf-8")
        assert await bench.reloading.reload() == "applied"
        assert bench.app.company.roster.persona("mia").skills == ("baking",)


async def test_owners_are_told_of_a_mistake_and_when_it_is_mended(
    tmp_path: Path,
) -> None:
    path = write(tmp_path)
    text = 'owners = ["fake/boss"]\n' + path.read_text(encoding="utf-8")
    text += '[connectors.fake]\nkind = "terminal"\n'
    async with open_bench(tmp_path) as bench:
        path.write_text(text, encoding="utf-8")
        assert await bench.reloading.reload() == "applied"
        ref = bench.app.system.find(names.OWNERS)
        assert ref is not None
        ref.tell(OwnerWrote("fake/boss", Address("fake", "with-boss")))
        for wrong in ("[[[\n", "[[[\n", "[limits]\nmax_open = 0\n"):
            path.write_text(text + wrong, encoding="utf-8")
            await bench.reloading.reload()
        path.write_text(text, encoding="utf-8")
        assert await bench.reloading.reload() == "unchanged"
        path.write_text(text.replace("callboard.db", "other.db"), encoding="utf-8")
        assert await bench.reloading.reload() == "waiting"
        assert await bench.reloading.reload() == "waiting"
        said = await heard(bench.platform, 4)
    assert [each.splitlines()[0] for each in said] == [
        REFUSED,
        REFUSED,
        MENDED,
        WAITING,
    ]
    assert "max_open" in said[1]
    assert said[3].splitlines()[1].startswith("store: ")


async def heard(platform: FakeTransport, count: int) -> list[str]:
    with trio.fail_after(30):
        while len(platform.deliveries) < count:
            await trio.testing.wait_all_tasks_blocked(0.01)
    return [each.text for each in platform.deliveries]


def test_who_sits_at_the_terminal_still_does_after_a_reload(tmp_path: Path) -> None:
    config = load_app(write(tmp_path), {}).value
    seated = with_terminal(config, "zoe").connectors["terminal"]
    assert isinstance(seated, TerminalConfig)
    assert seated.user == "zoe"
