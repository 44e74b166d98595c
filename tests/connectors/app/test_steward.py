"""Proves that AGENTS.md in agents' folders is true, and that others' words stay."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from hypothesis import given, strategies as st

from actors.config.agents import AgentConfig
from connectors.app import agents_md as guide
from connectors.app.agents_md import Described, Guide, GuideSource, steward_spec
from connectors.config.app import AppConfig, ProjectsConfig
from connectors.config.tools import WorkspaceConfig
from connectors.tools.workspace.files import Desks
from runtime.errors import DeclineStart
from runtime.telemetry.metrics import Metrics
from runtime.testing import open_test_system

NOTES = "\n## My notes\n\nRoses on Monday.\n"


class Bed:
    """An agent with a folder, skills that may change, and a steward."""

    def __init__(self, tmp_path: Path, every: float = 86_400.0) -> None:
        self.file = tmp_path / "workspace" / "anna" / "AGENTS.md"
        self.projects = tmp_path / "projects"
        self.projects.mkdir(exist_ok=True)
        self.skills: Described = {"anna": (("baking", "Bakes | cakes"),)}
        self.metrics = Metrics()
        self.config = AppConfig(
            agents={
                "anna": AgentConfig(tools=("read_file",), description="A gardener."),
                "ben": AgentConfig(tools=("clock",)),
            },
            workspace=WorkspaceConfig(
                path=str(tmp_path / "workspace"), guide_every=every
            ),
            projects=ProjectsConfig(folder=self.projects),
        )

    def counted(self) -> dict[str, int]:
        name = "callboard_workspace_guides_total{outcome="
        lines = self.metrics.render().decode().splitlines()
        found = [each.removeprefix(name) for each in lines if each.startswith(name)]
        return {each.split('"')[1]: int(float(each.split()[-1])) for each in found}


@asynccontextmanager
async def open_bed(bed: Bed) -> AsyncGenerator[None]:
    """Run a steward until it has looked once, then the block."""
    desks = Desks(bed.config.workspace)
    bed.metrics = Metrics()
    source = GuideSource(bed.config, lambda: bed.skills)
    spec = steward_spec(lambda: (source, desks), bed.metrics)
    async with open_test_system() as system:
        system.spawn(spec.start(), name="steward")
        with trio.fail_after(30):
            while not bed.counted():  # noqa: ASYNC110  a thread's end
                await trio.sleep(0.005)
        yield


async def test_it_is_written_at_the_start(tmp_path: Path) -> None:
    bed = Bed(tmp_path)
    (bed.projects / "garden.md").write_text("Roses.")
    async with open_bed(bed):
        text = bed.file.read_text()
    assert "# The folder of anna\n\nA gardener." in text
    assert "| baking | Bakes / cakes |" in text
    assert "| Project |\n|---|\n| garden |" in text
    assert "Tools: read_file." in text
    assert not (bed.file.parent.parent / "ben").exists(), "ben has no folder"
    assert bed.counted() == {"written": 1}


async def test_what_others_wrote_around_it_stays(tmp_path: Path) -> None:
    bed = Bed(tmp_path)
    async with open_bed(bed):
        pass
    bed.file.write_text(f"Mine.\n{bed.file.read_text()}{NOTES}")
    bed.skills = {"anna": (("sewing", "Sews."),)}
    async with open_bed(bed):
        text = bed.file.read_text()
    assert text.startswith("Mine.\n")
    assert text.endswith(NOTES)
    assert "sewing" in text
    assert "baking" not in text


async def test_what_is_true_is_not_written_again(tmp_path: Path) -> None:
    bed = Bed(tmp_path)
    async with open_bed(bed):
        pass
    before = bed.file.stat()
    async with open_bed(bed):
        after = bed.file.stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)
    assert bed.counted() == {"unchanged": 1}


async def test_it_is_refreshed_while_it_runs(tmp_path: Path) -> None:
    bed = Bed(tmp_path, every=0.02)
    async with open_bed(bed):
        bed.skills = {"anna": (("sewing", "Sews."),)}
        with trio.fail_after(30):
            while "sewing" not in bed.file.read_text():  # noqa: ASYNC110  a thread's end
                await trio.sleep(0.005)


async def test_a_link_in_its_place_is_left_alone(tmp_path: Path) -> None:
    bed = Bed(tmp_path)
    outside = tmp_path / "secret"
    outside.write_text("nobody's business")
    bed.file.parent.mkdir(parents=True)
    bed.file.symlink_to(outside)
    async with open_bed(bed):
        assert outside.read_text() == "nobody's business"
    assert bed.counted() == {"failed": 1}


async def test_a_file_that_is_no_text_is_left_alone(tmp_path: Path) -> None:
    bed = Bed(tmp_path)
    bed.file.parent.mkdir(parents=True)
    bed.file.write_bytes(b"\xff\xfe")
    async with open_bed(bed):
        assert bed.file.read_bytes() == b"\xff\xfe"
    assert bed.counted() == {"failed": 1}


def test_without_folders_there_is_no_steward(tmp_path: Path) -> None:
    bed = Bed(tmp_path, every=0.0)
    desks = Desks(bed.config.workspace)
    spec = steward_spec(lambda: (GuideSource(bed.config, dict), desks), bed.metrics)
    with pytest.raises(DeclineStart):
        spec.start()


TEXTS = st.text(max_size=60).filter(lambda x: "<!-- callboard" not in x)


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_only_its_own_part_changes(
    before: str, after: str, one: str, other: str
) -> None:
    first = guide.merged("", one)
    own = f"{before}{first}{after}"
    second = guide.merged(own, other)
    assert second == f"{before}{guide.merged('', other)}{after}"
    assert guide.merged(second, other) == second
    assert guide.merged(second, one) == own


@given(TEXTS)
def test_whatever_was_there_before_is_kept(old: str) -> None:
    assert guide.merged(old, "x").endswith(old if old.strip() else guide.END + "\n")


@given(st.lists(st.tuples(st.text(max_size=400), st.text(max_size=400)), max_size=250))
def test_a_table_is_bounded_and_ends_nothing(rows: list[tuple[str, str]]) -> None:
    made = Guide(agent="anna", skills=tuple(rows), max_bytes=1, max_file_bytes=1)
    text = guide.written(made)
    assert "-->" not in text
    table = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(table) <= guide.MOST_ROWS + 1
    assert all(line.count("|") == 3 for line in table)


@pytest.mark.parametrize("over", [-1, 0, 1, 7])
def test_a_table_says_how_many_rows_it_leaves_out(over: int) -> None:
    rows = (("name", "text"),) * (guide.MOST_ROWS + over)
    made = Guide(agent="anna", skills=rows, max_bytes=1, max_file_bytes=1)
    left_out = f"({over} more are not shown.)"
    assert ("are not shown" in guide.written(made)) == (over > 0)
    assert (left_out in guide.written(made)) == (over > 0)
