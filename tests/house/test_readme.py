"""Proves that the first screen of the README and all transcripts are so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import readme

FIRST_SCREEN = 80
TRANSCRIPTS = 2
SAMPLE = """
```console
$ callboard chat --config config/offline.toml
you> hello
anna> Good morning.
```
`callboard config check FILE` and `callboard --version`
 5 actors/agents/agent.py → actors/turn/turn.py  the tool loop   rules: prompt, turn
"""


def run_callboard(
    *arguments: str, typed: str = "", folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run the program as a person would, with `typed` on its standard input."""
    return subprocess.run(
        [sys.executable, "-m", "connectors", *arguments],
        input=typed,
        cwd=folder,
        env={"PYTHONPATH": str(readme.ROOT), "PATH": "", "STATE_DIRECTORY": "."},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def test_the_reader_of_the_readme_sees_its_parts() -> None:
    assert readme.transcripts(SAMPLE) == [
        readme.Transcript(
            ("chat", "--config", "config/offline.toml"),
            ("hello",),
            ("anna> Good morning.",),
        )
    ]
    assert readme.subcommands(SAMPLE) == {("chat",), ("config", "check")}
    assert readme.steps(SAMPLE) == [
        readme.Step(
            5, ("actors/agents/agent.py", "actors/turn/turn.py"), ("prompt", "turn")
        )
    ]
    assert readme.said("you> hello\nanna> Hi.\nyou> \n") == ("anna> Hi.",)


def test_the_first_screen_shows_run_test_way_and_transcript() -> None:
    screen = "\n".join(readme.read().splitlines()[:FIRST_SCREEN])
    run, test = readme.commands(screen)
    assert run.endswith("callboard chat --config config/offline.toml")
    assert test.endswith(".venv/bin/python -m pytest")
    assert len(readme.steps(screen)) == 11
    assert readme.transcripts(screen)


def test_both_commands_make_their_own_environment_from_the_pins() -> None:
    for command in readme.commands(readme.read()):
        make, install, _ = command.split(" && ")
        assert make == "python3 -m venv .venv"
        assert install.startswith(".venv/bin/pip install -q -c constraints.txt -e ")


def test_ci_runs_the_test_command_of_the_readme() -> None:
    script = (readme.ROOT / ".ci" / "run").read_text()
    pattern = re.search(r"grep -m 1 -E '([^']+)' README\.md", script)
    assert pattern
    lines = [x for x in readme.read().splitlines() if re.search(pattern.group(1), x)]
    assert lines == [readme.commands(readme.read())[1]]
    assert 'PATH=$usual_path step bash -c "$test_command $noting" 2>&1' in script
    assert script.splitlines()[-1].startswith("exit $((suite_status ")


def test_the_transcript_is_what_the_program_says(tmp_path: Path) -> None:
    pages = [
        readme.read(),
        *(x.read_text() for x in (readme.ROOT / "docs").rglob("*.md")),
    ]
    shown = [transcript for page in pages for transcript in readme.transcripts(page)]
    assert len(shown) >= TRANSCRIPTS
    for transcript in shown:
        arguments = [
            str(readme.ROOT / word) if word.endswith((".toml", ".txt")) else word
            for word in transcript.arguments
        ]
        typed = "".join(f"{line}\n" for line in transcript.typed)
        run = run_callboard(*arguments, typed=typed, folder=tmp_path)
        assert run.returncode == 0, run.stderr
        assert readme.said(run.stdout) == transcript.said


@pytest.mark.parametrize("word", ["no-such-command", "config no-such-command"])
def test_a_subcommand_that_does_not_exist_would_be_noticed(
    word: str, tmp_path: Path
) -> None:
    run = run_callboard(*word.split(), "--help", folder=tmp_path)
    assert run.returncode == 2
    assert "No such command" in run.stderr
