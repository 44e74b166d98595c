"""Proves what becomes of each kind of change of the settings of a running company."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from actors import names
from connectors.app.app import App, open_app
from connectors.app.reload.reload import Reloading, SettingsSource, files_of
from connectors.config.app import AppConfig
from connectors.settings.load import load_app
from runtime.config.loader import Settings
from runtime.supervision.supervisor import RestartChild, StopChild
from runtime.telemetry.logs import Redactor
from tests.processes.running import write_settings

SECRET = "words-that-nobody-may-see"  # noqa: S105  it is one for this test only

FAR = """
[models.far]
kind = "openai"
model = "any"
base_url = "http://127.0.0.1:9/v1"
api_key = { file = "key" }
"""
BUDGET = '[[budgets]]\nscope = "all"\nhard_tokens = 1000\n'
BROKEN = '[models.far]\nkind = "opnai"\n'


@dataclass(frozen=True)
class Bench:
    """A company without connectors, and its settings file."""

    folder: Path
    app: App
    reloading: Reloading
    redactor: Redactor

    def write(self, more: str = "") -> None:
        write(self.folder, more)

    def count(self, outcome: str) -> int:
        text = self.app.metrics.render().decode()
        name = f'callboard_settings_reloads_total{{outcome="{outcome}"}} '
        found = [line for line in text.splitlines() if line.startswith(name)]
        return int(float(found[0].removeprefix(name))) if found else 0


def write(folder: Path, more: str = "") -> Path:
    path = write_settings(folder, more=more)
    text = path.read_text(encoding="utf-8")
    database = str(folder / "var" / "callboard.db")
    path.write_text(text.replace("callboard.db", database), encoding="utf-8")
    return path


@asynccontextmanager
async def open_bench(folder: Path) -> AsyncGenerator[Bench]:
    (folder / "key").write_text(SECRET, encoding="utf-8")
    load = partial(load_app, write(folder), {})
    source = SettingsSource(load(), load, Redactor())
    config = source.settings.value
    async with open_app(config, {}, private=files_of(source.settings)) as app:
        reloading = Reloading(app, config, source)
        yield Bench(folder, app, reloading, source.redactor)


async def test_what_changes_nothing_is_left_as_it_is(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        before = bench.app.stock.current
        bench.write("# only a comment\n")
        assert await bench.reloading.reload() == "unchanged"
        assert bench.app.stock.current is before
        assert bench.count("unchanged") == 1


async def test_a_new_model_is_there_and_its_secret_is_kept(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        bench.write(FAR)
        assert await bench.reloading.reload() == "applied"
        assert set(bench.app.stock.current.offers) == {"scripted", "far"}
        assert bench.redactor.clean(f"a {SECRET} b") == "a *** b"
        kept = bench.app.stock.sandbox.territory.kept
        assert {tmp_path / "key", tmp_path / "callboard.toml"} <= set(kept)
        assert await bench.reloading.reload() == "unchanged"


async def test_budgets_change_and_go_again(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        for more, count in ((BUDGET, 1), ("", 0)):
            bench.write(more)
            assert await bench.reloading.reload() == "applied"
            assert len(bench.app.stock.current.budgets) == count
        assert bench.count("applied") == 2


async def test_the_same_mistake_is_told_once(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        bench.write(BROKEN)
        assert await bench.reloading.reload() == "refused"
        assert await bench.reloading.reload() is None
        bench.write("[[")
        assert await bench.reloading.reload() == "refused"
        bench.write()
        assert await bench.reloading.reload() == "unchanged"
        bench.write(BROKEN)
        assert await bench.reloading.reload() == "refused"
        assert bench.count("refused") == 3


async def test_a_price_list_that_is_none_changes_nothing(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        before = bench.app.stock.current
        (tmp_path / "prices.toml").write_text("nonsense = 1", encoding="utf-8")
        bench.write(f'{FAR}\n[ledger]\nprices = "prices.toml"\n')
        assert await bench.reloading.reload() == "refused"
        assert bench.app.stock.current is before


async def test_limits_and_agents_change_at_once(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        company = bench.app.company
        bench.write('[limits]\nmax_in_flight = 3\n[agents.mia]\nprompt = "Hi."\n')
        assert await bench.reloading.reload() == "applied"
        assert company.services.limits.max_in_flight == 3
        assert list(company.roster.team.names) == ["anna", "ben", "mia"]
        assert bench.app.system.find(names.agent("mia")) is not None
        bench.write()
        assert await bench.reloading.reload() == "applied"
        assert company.services.limits.max_in_flight == 64
        assert list(company.roster.team.names) == ["anna", "ben"]
        assert company.roster.team.leaving == {"mia"}


async def test_what_cannot_change_waits_and_the_rest_does_not(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        path = write(tmp_path, "[limits]\nmax_in_flight = 3\n")
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("[store]", '[store]\nsynchronous = "normal"'))
        assert await bench.reloading.reload() == "applied"
        assert bench.app.company.services.limits.max_in_flight == 3
        assert bench.reloading.config.store.synchronous == "full"
        assert await bench.reloading.reload() == "waiting"
        assert bench.count("waiting") == 1


async def test_a_change_that_was_begun_is_taken_back_whole(tmp_path: Path) -> None:
    async with open_bench(tmp_path) as bench:
        root, services = bench.app.system.find(names.ROOT), bench.app.company.services
        assert root is not None
        await root.ask(StopChild("staff"))
        bench.write('[limits]\nmax_in_flight = 3\n[agents.mia]\nprompt = "Hi."\n')
        assert await bench.reloading.reload() == "refused"  # half of it is done
        await root.ask(RestartChild("staff"))
        bench.write()
        assert await bench.reloading.reload() == "applied"
        assert services.limits.max_in_flight == 64
        assert list(bench.app.company.roster.team.names) == ["anna", "ben"]
        assert await bench.reloading.reload() == "unchanged"


async def test_what_programs_are_kept_from_changes_twice(tmp_path: Path) -> None:
    shell = '[agents.mia]\nprompt = "Hi."\ntools = ["run_shell"]\n[sandbox]\n'
    async with open_bench(tmp_path) as bench:
        for more in ("required = false\n", "required = false\n" + FAR):
            bench.write(shell + more)
            assert await bench.reloading.reload() == "applied"
        assert await bench.reloading.reload() == "unchanged"


async def test_a_mistake_of_ours_ends_nobody(tmp_path: Path) -> None:
    def load() -> Settings[AppConfig]:
        raise LookupError("something that nobody thought of")

    settings = load_app(write(tmp_path), {})
    async with open_app(settings.value, {}) as app:
        source = SettingsSource(settings, load, Redactor())
        reloading = Reloading(app, settings.value, source)
        assert await reloading.reload() == "refused"
        assert await reloading.reload() is None
