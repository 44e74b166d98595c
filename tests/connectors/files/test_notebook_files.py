"""Proves what a notebook of files does to the disk, and what it never does."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from actors.messages.inbound import Address, ToolContext
from actors.rules.prompt.skills import Skill
from connectors.config.mcp import SkillsConfig
from connectors.files.notebook import (
    MOST_BYTES,
    MOST_KEPT,
    MOST_OF_BUGS,
    FileNotebook,
    Projects,
)
from connectors.skills.folder import SkillFolder, read_folders
from connectors.skills.lessons import HALF_WRITTEN, Lessons
from connectors.skills.source import SkillSource, Using

NOON = 1_767_268_800.0  # 2026-01-01 12:00 UTC
SKILL = "---\nname: pdf\ndescription: Fills in forms.\ntriggers: form\n---\nDo this.\n"
TAUGHT = f"{SKILL}\n## Lessons\n\n- Ask first.\n"


# Files are so small here that a test may wait for them.
def skilled(folder: Path) -> tuple[Lessons, dict[str, SkillFolder], Path]:
    path = folder / "skills" / "pdf"
    path.mkdir(parents=True)
    (path / "SKILL.md").write_text(SKILL)
    own = dict(read_folders([folder / "skills"], 30_000).skills)
    return Lessons({"ben": own}, SkillsConfig()), own, path / "SKILL.md"


async def teach(lessons: Lessons, lesson: str = "Ask first.") -> str:
    return (await lessons.add("ben", "pdf", lesson, is_owner=True)).why


async def test_a_lesson_stands_in_the_file_once_and_keeps_its_mode(
    tmp_path: Path,
) -> None:
    lessons, _, file = skilled(tmp_path)
    file.chmod(0o640)
    (file.parent / HALF_WRITTEN).write_text("of a crash")
    assert [await teach(lessons) for _ in range(3)] == [""] * 3
    assert file.read_text() == TAUGHT
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert list(file.parent.iterdir()) == [file]


async def test_a_lesson_counts_at_once(tmp_path: Path) -> None:
    lessons, own, _ = skilled(tmp_path)
    source = SkillSource(
        {"ben": own}, {}, Using(60.0), 2, frozenset(), lambda _name: None
    )
    assert await teach(lessons) == ""
    address = Address("terminal", "1")
    context = ToolContext(
        agent="ben", correlation_id="c", address=address, sender_id="s"
    )
    assert "- Ask first." in "".join((await source.offer(context, "a form")).notes)


@pytest.mark.parametrize(
    ("teachers", "is_owner", "may"),
    [
        ("nobody", True, False),
        ("owners", True, True),
        ("owners", False, False),
        ("everybody", False, True),
    ],
)
async def test_who_may_teach_is_a_setting(
    tmp_path: Path, teachers: str, *, is_owner: bool, may: bool
) -> None:
    _, own, file = skilled(tmp_path)
    config = SkillsConfig(lessons_from=teachers)  # type: ignore[arg-type]
    lessons = Lessons({"ben": own}, config)
    jot = await lessons.add("ben", "pdf", "Ask first.", is_owner=is_owner)
    assert (not jot.why) is may
    assert file.read_text() == (TAUGHT if may else SKILL)


def spoil(file: Path, how: str) -> None:
    folder, outside = file.parent, file.parent.parent.parent / "outside"
    if how == "linked folder":
        folder.rename(outside)
        folder.symlink_to(outside)
        return
    file.rename(outside)
    if how == "linked file":
        file.symlink_to(outside)
    elif how == "pipe":
        os.mkfifo(file)
    elif how == "folder":
        file.mkdir()
    elif how == "no text":
        file.write_bytes(b"\xff" * 10)
    elif how == "large":
        file.write_bytes(SKILL.encode() + b"x" * 600_000)


@pytest.mark.parametrize(
    "how",
    ["linked folder", "linked file", "pipe", "folder", "no text", "large", "gone"],
)
async def test_what_is_no_plain_skill_is_left_alone(tmp_path: Path, how: str) -> None:
    lessons, own, file = skilled(tmp_path)
    spoil(file, how)
    before = own["pdf"]
    outside = tmp_path / "outside"
    assert await teach(lessons)
    text = outside / "SKILL.md" if outside.is_dir() else outside
    assert text.read_text() == SKILL
    assert own["pdf"] is before


async def test_a_skill_that_became_wrong_keeps_the_last_good_one(
    tmp_path: Path,
) -> None:
    lessons, own, file = skilled(tmp_path)
    file.write_text(SKILL.replace("name: pdf", "name: other"))
    assert "called" in await teach(lessons)
    assert own["pdf"].skill == Skill("pdf", "Fills in forms.", ("form",), "Do this.")


async def test_bugs_stand_a_line_each_and_once(tmp_path: Path) -> None:
    file = tmp_path / "var" / "bugs.md"
    book = FileNotebook(file, None, None)
    for agent, later, text in (
        ("ben", 0.0, "It hangs."),
        ("ben", 90.0, "It\nhangs."),
        ("anna", 90.0, "It hangs."),
        ("ben", 120.0, "ben: It hangs."),
    ):
        assert not (await book.report_bug(agent, NOON + later, text)).why
    assert file.read_text() == (
        "- 2026-01-01 12:00 UTC ben: It hangs.\n"
        "- 2026-01-01 12:01 UTC anna: It hangs.\n"
        "- 2026-01-01 12:02 UTC ben: ben: It hangs.\n"
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_a_line_that_was_cut_off_is_ended_first(tmp_path: Path) -> None:
    file = tmp_path / "bugs.md"
    file.write_text("# Mine\n\n- 2026-01-01 12:00 UTC ben: It ha")
    book = FileNotebook(file, None, None)
    assert not (await book.report_bug("ben", NOON, "It hangs.")).why
    lines = file.read_text().splitlines()
    assert lines[-1] == "- 2026-01-01 12:00 UTC ben: It hangs."
    assert len(lines) == 4


@pytest.mark.parametrize("how", ["link", "pipe", "folder", "full", "no folder"])
async def test_where_no_bug_can_be_written_is_told(tmp_path: Path, how: str) -> None:
    file, outside = tmp_path / "var" / "bugs.md", tmp_path / "outside"
    outside.write_text("")
    if how != "no folder":
        file.parent.mkdir()
    if how == "link":
        file.symlink_to(outside)
    elif how == "pipe":
        os.mkfifo(file)
    elif how == "folder":
        file.mkdir()
    elif how == "full":
        file.write_bytes(b"x" * MOST_OF_BUGS)
    else:
        file.parent.write_text("in the way")
    jot = await FileNotebook(file, None, None).report_bug("ben", NOON, "It hangs.")
    assert "bugs" in jot.why
    assert outside.read_text() == ""


async def test_without_skills_and_projects_that_is_told(tmp_path: Path) -> None:
    book = FileNotebook(tmp_path / "bugs.md", None, None)
    jot = await book.improve_skill("ben", "pdf", "Ask first.", is_owner=True)
    assert jot.why == "there are no skills here"
    for found in (await book.find_project("x"), await book.read_project("x")):
        assert found.why == "there are no projects here"


async def test_a_project_is_a_file_or_a_folder_and_changes_count(
    tmp_path: Path,
) -> None:
    (tmp_path / "Fair.md").write_text("in May")
    (tmp_path / "The House").mkdir()
    (tmp_path / "The House" / "PROJECT.md").write_text("\ufeffin June\x00\n")
    projects = Projects(tmp_path)
    assert (await projects.find("the  HOUSE")).text == "The House"
    assert (await projects.read("The House")).text == "in June"
    for text in ("in May", "in autumn"):
        (tmp_path / "Fair.md").write_text(text)
        assert (await projects.read("Fair")).text == text
    (tmp_path / "Fair.md").unlink()
    assert "no such project" in (await projects.read("Fair")).why
    assert (await projects.find("Hose")).why.endswith("Did you mean The House?")


async def test_a_text_that_is_known_is_not_read_again(tmp_path: Path) -> None:
    file = tmp_path / "fair.md"
    file.write_text("in May")
    os.utime(file, ns=(1, 1))
    projects = Projects(tmp_path)
    assert (await projects.read("fair")).text == "in May"
    file.write_text("in Jun")  # of the same size, and with a time that says: unchanged
    os.utime(file, ns=(1, 1))
    assert (await projects.read("fair")).text == "in May"
    for number in range(MOST_KEPT):
        (tmp_path / f"{number}.md").write_text("x")
        assert (await projects.read(str(number))).text == "x"
    assert (await projects.read("fair")).text == "in Jun"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"x" * (MOST_BYTES + 1), "above"),
        (b"\xff\xfe", "no text"),
        (b" \n", "empty"),
        (None, "no such project"),
    ],
)
async def test_a_project_that_cannot_be_read_is_told(
    tmp_path: Path, content: bytes | None, says: str
) -> None:
    file = tmp_path / "fair.md"
    if content is None:
        os.mkfifo(file)
    else:
        file.write_bytes(content)
    assert says in (await Projects(tmp_path).find("fair")).why


async def test_links_and_hidden_files_are_no_projects(tmp_path: Path) -> None:
    folder, outside = tmp_path / "projects", tmp_path / "outside"
    outside.mkdir()
    (outside / "PROJECT.md").write_text("nobody's business")
    (folder / "inside").mkdir(parents=True)
    (folder / "fair").symlink_to(outside)
    (folder / "house.md").symlink_to(outside / "PROJECT.md")
    (folder / "inside" / "PROJECT.md").symlink_to(outside / "PROJECT.md")
    (folder / ".hidden.md").write_text("x")
    projects = Projects(folder)
    for name in ("fair", "house", "inside", ".hidden", "outside"):
        assert "no such project" in (await projects.find(name)).why
    assert "cannot be read" in (await Projects(tmp_path / "gone").find("x")).why
