"""Proves that SKILL.md folders are read as specified, and hostile ones do no harm."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from connectors.skills.folder import (
    LARGEST_FILE,
    BundleError,
    files_of,
    parse,
    read_bundled,
    read_folders,
    read_skill,
    split,
)
from connectors.skills.lessons import text_of
from runtime.errors import SettingsError

HEAD = "name: pdf\ndescription: Fills in forms."
SKILL = f"---\n{HEAD}\n---\nDo this.\n"


def make(folder: Path, text: str = SKILL, name: str = "pdf") -> Path:
    path = folder / name
    path.mkdir(parents=True)
    (path / "SKILL.md").write_text(text, encoding="utf-8")
    return path


def headed(*lines: str) -> str:
    return "\n".join(["---", HEAD, *lines, "---", "Do this."])


def test_a_skill_is_what_its_file_says(tmp_path: Path) -> None:
    text = headed(
        "license: Apache-2.0",
        "compatibility: needs git",
        "allowed-tools: Read Bash(git:*)",
        "metadata:",
        '  version: "1.0"',
        "  triggers: invoice, Tax Return ,invoice",
    )
    path = make(tmp_path, text)
    (path / "references").mkdir()
    (path / "references" / "forms.md").write_text("more")
    skill = read_skill(path, 1_000).skill
    assert (skill.name, skill.description) == ("pdf", "Fills in forms.")
    assert skill.triggers == ("invoice", "Tax Return")
    assert (skill.body, skill.files) == ("Do this.", ("references/forms.md",))


@pytest.mark.parametrize(
    "line",
    [
        "triggers: [a, b]",
        "triggers:\n  - a\n  - b",
        'triggers: "a, b"',
        "metadata: {triggers: 'a,b'}",
    ],
)
def test_triggers_are_written_in_many_ways(line: str, tmp_path: Path) -> None:
    assert read_skill(make(tmp_path, headed(line)), 1_000).skill.triggers == ("a", "b")


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("Do this.", 1, "has no head"),
        ("---\nname: pdf\n", 1, "its head has no end"),
        ("---\nname: pdf: x\n---\n", 2, "its head is no YAML"),
        ("---\n- a\n---\n", 0, "no table"),
        (headed("a: &b 1", "c: *b"), 4, "anchors and aliases"),
        (headed("a: !!python/object:os.system x"), 4, "tags are not read"),
        (headed("name: other"), 4, "'name' stands there twice"),
        (headed("? [a]", ": b"), 4, "a name must be a text"),
        (headed("a: " + "[" * 50 + "]" * 50), 4, "nested too deeply"),
        (headed("a: [" + "1," * 2_000 + "]"), 4, "too much"),
        ("---\nname: [pdf]\ndescription: x\n---\n", 0, "'name' is missing"),
        ("---\nname: ../x\ndescription: x\n---\n", 0, "'name' is missing"),
        ("---\nname: PDF\ndescription: x\n---\n", 0, "'name' is missing"),
        ("---\nname: a--b\ndescription: x\n---\n", 0, "'name' is missing"),
        ("---\nname: other\ndescription: x\n---\n", 0, "its folder is called"),
        ("---\nname: pdf\n---\n", 0, "'description' is missing"),
        (f"---\nname: pdf\ndescription: {'x' * 1025}\n---\n", 0, "above 1024"),
        (headed("compatibility: " + "x" * 501), 0, "above 500"),
        (headed("triggers: {a: b}"), 0, "no list of words"),
        (headed("triggers: [" + "x" * 61 + "]"), 0, "no list of words"),
        (headed("metadata: [a]"), 0, "'metadata' must be a table"),
        (headed("x: " + "y" * 20_000), 1, "above 16384"),
        (SKILL + "z" * 2_000, 0, "instructions are above 1000"),
    ],
)
def test_a_wrong_skill_says_where_and_why(
    text: str, line: int, says: str, tmp_path: Path
) -> None:
    path = make(tmp_path, text)
    with pytest.raises(SettingsError, match=re.escape(says)) as caught:
        read_skill(path, 1_000)
    assert caught.value.file == str(path / "SKILL.md")
    assert caught.value.line == line


def test_bombs_are_refused_at_once(tmp_path: Path) -> None:
    laughs = [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    began = time.monotonic()
    with pytest.raises(SettingsError):
        read_skill(make(tmp_path, headed("a0: &a0 lol", *laughs)), 1_000)
    with pytest.raises(SettingsError):
        read_skill(make(tmp_path, headed("a: " + "[" * 16_000), "pdf2"), 1_000)
    assert time.monotonic() - began < 2


@given(head=st.text("ab:-[]{}&*!|>'\"# \n", max_size=80))
def test_any_head_is_read_or_refused(head: str) -> None:
    try:
        tree = parse(head, "SKILL.md")
    except SettingsError:
        return
    assert isinstance(tree, dict)


@given(text=st.text("ab:-\n", max_size=60))
def test_head_and_body_make_up_the_file(text: str) -> None:
    try:
        head, body = split(f"---\n{text}", "f")
    except SettingsError:
        return
    assert f"---\n{text}".startswith(f"---\n{head}---")
    assert text.endswith(body)


def test_one_wrong_skill_leaves_the_others(tmp_path: Path) -> None:
    make(tmp_path / "one")
    make(tmp_path / "one", "nothing", "broken")
    make(tmp_path / "two")
    (tmp_path / "two" / "no-skill").mkdir()
    found = read_folders([tmp_path / "one", tmp_path / "two", tmp_path / "gone"], 1_000)
    assert list(found.skills) == ["pdf"]
    assert found.skills["pdf"].path == tmp_path / "one" / "pdf"
    assert len(found.problems) == 3


def test_nothing_outside_its_folder_is_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("do not read")
    path = make(tmp_path)
    (path / "link.txt").symlink_to(secret)
    (path / "up").symlink_to(tmp_path)
    os.mkfifo(path / "pipe")
    (path / ".hidden").write_text("x")
    assert files_of(path, but="SKILL.md") == ()
    for name in (
        "../secret.txt",
        "a/../../secret.txt",
        str(secret),
        "link.txt",
        "up/secret.txt",
        "pipe",
        ".",
        "",
        "no\0thing",
        "x" * 1_000,
    ):
        with pytest.raises(BundleError):
            read_bundled(path, name)
    assert read_bundled(path, "./SKILL.md") == SKILL


def test_a_linked_skill_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pdf"
    path.mkdir()
    (tmp_path / "elsewhere.md").write_text(SKILL)
    (path / "SKILL.md").symlink_to(tmp_path / "elsewhere.md")
    with pytest.raises(SettingsError, match="cannot be read"):
        read_skill(path, 1_000)


def test_what_is_no_text_or_too_long_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path)
    (path / "image.bin").write_bytes(b"\xff\xfe\x00")
    (path / "long.txt").write_text("x" * 100)
    with pytest.raises(BundleError, match="no text in UTF-8"):
        read_bundled(path, "image.bin")
    assert read_bundled(path, "long.txt", most_bytes=100) == "x" * 100
    with pytest.raises(BundleError, match="above 99 bytes"):
        read_bundled(path, "long.txt", most_bytes=99)
    assert len(text_of(bytes(LARGEST_FILE))) == LARGEST_FILE
    with pytest.raises(BundleError, match=f"above {LARGEST_FILE} bytes"):
        text_of(bytes(LARGEST_FILE + 1))
