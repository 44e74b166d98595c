"""Proves that every notebook keeps what the port `Notebook` promises."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from actors.ports import Notebook
from connectors.config.mcp import SkillsConfig
from connectors.files.notebook import FileNotebook, Projects
from connectors.skills.folder import read_folders
from connectors.skills.lessons import Lessons
from tests.fakes.memory.notebook import FakeNotebook

NOON = 1_767_268_800.0  # 2026-01-01 12:00 UTC
SKILL = "---\nname: pdf\ndescription: Fills in forms.\n---\nDo this.\n"
HOSTILE = (
    *("", " ", ".", "..", "../x", "../../etc/passwd", "/etc/passwd", "~/x", "a/b"),
    *("pdf/..", "pdf/SKILL", "x\0", "\0", "a\\b", "C:\\x", "*", "\ud800", "x\n"),
    *("a" * 300, "a" * 100_000, "é" * 5_000, ".hidden", "fair\0", "\u202efair"),
    *("fair/PROJECT", "fair.md", "PROJECT", "secret", "linked", "folder"),
)


def made(kind: str, tmp_path: Path) -> Notebook:
    """Make a notebook in which ben has the skill `pdf`, and `Fair` is a project."""
    if kind == "fake":
        return FakeNotebook({"ben": ["pdf"]}, {"Fair": "All about it."})
    (tmp_path / "secret.md").write_text("nobody's business")
    skill = tmp_path / "skills" / "pdf"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(SKILL)
    projects = tmp_path / "projects"
    projects.mkdir()
    (projects / "Fair.md").write_text("All about it.\n")
    (projects / "linked.md").symlink_to(tmp_path / "secret.md")
    (projects / "folder").symlink_to(tmp_path)
    found = read_folders([tmp_path / "skills"], 30_000).skills
    lessons = Lessons({"ben": dict(found)}, SkillsConfig())
    return FileNotebook(tmp_path / "bugs.md", lessons, Projects(projects))


@pytest.fixture(params=["fake", "files"])
def notebook(request: pytest.FixtureRequest, tmp_path: Path) -> Notebook:
    return made(str(request.param), tmp_path)


async def test_a_lesson_is_learnt_and_told_the_same_the_second_time(
    notebook: Notebook,
) -> None:
    for _ in range(2):
        jot = await notebook.improve_skill("ben", "PDF ", "Ask first.", is_owner=True)
        assert (jot.text, jot.why) == ("pdf", "")


@pytest.mark.parametrize(
    ("agent", "skill", "lesson", "is_owner"),
    [
        ("anna", "pdf", "Ask first.", True),
        ("ben", "word", "Ask first.", True),
        ("ben", "pdf", " \n", True),
        ("ben", "pdf", "Ask first.", False),
    ],
)
async def test_a_lesson_that_may_not_be_learnt_is_refused(
    notebook: Notebook, agent: str, skill: str, lesson: str, *, is_owner: bool
) -> None:
    jot = await notebook.improve_skill(agent, skill, lesson, is_owner=is_owner)
    assert (jot.text, bool(jot.why)) == ("", True)


async def test_a_bug_is_reported_and_told_the_same_the_second_time(
    notebook: Notebook,
) -> None:
    for later in (0.0, 86_400.0):
        jot = await notebook.report_bug("ben", NOON + later, "It\nhangs.")
        assert (jot.text, jot.why) == ("It hangs.", "")
    assert (await notebook.report_bug("ben", NOON, " \n ")).why


async def test_a_long_report_is_cut(notebook: Notebook) -> None:
    jot = await notebook.report_bug("ben", NOON, "x" * 100_000)
    assert 1_000 < len(jot.text) <= 2_000


async def test_a_project_is_found_in_any_case_and_read(notebook: Notebook) -> None:
    assert (await notebook.find_project("fair")).text == "Fair"
    assert (await notebook.find_project("Fair")).text == "Fair"
    assert (await notebook.read_project("Fair")).text == "All about it."


async def test_a_project_that_is_not_there_is_told(notebook: Notebook) -> None:
    for jot in (
        await notebook.find_project("other"),
        await notebook.read_project("other"),
    ):
        assert (jot.text, bool(jot.why)) == ("", True)


@pytest.mark.parametrize("name", HOSTILE)
async def test_no_name_leads_anywhere_else(notebook: Notebook, name: str) -> None:
    for jot in (
        await notebook.find_project(name),
        await notebook.read_project(name),
        await notebook.improve_skill("ben", name, "Ask first.", is_owner=True),
    ):
        assert (jot.text, bool(jot.why)) == ("", True)
        assert len(jot.why) < 500


async def test_what_is_written_at_once_is_all_taken(notebook: Notebook) -> None:
    why: list[str] = []

    async def write(number: int) -> None:
        lesson, bug = f"lesson {number}", f"bug {number}"
        why.append(
            (await notebook.improve_skill("ben", "pdf", lesson, is_owner=True)).why
        )
        why.append((await notebook.report_bug("ben", NOON, bug)).why)

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(write, number)
    assert why == [""] * 40
