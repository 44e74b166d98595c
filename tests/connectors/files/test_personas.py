"""Proves that an agent's files are read with care, and again when they change."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from actors import names
from actors.protocol import ReplaceFiles
from actors.rules.prompt.brief import NO_FILES, PersonaFiles
from connectors.files.personas import FILES, MOST_BYTES, Personas, read_persona
from connectors.settings.load import check_persona
from runtime.actor.actor import Actor
from runtime.errors import SettingsError
from runtime.system import open_system
from runtime.telemetry.metrics import Metrics

SOON = 0.01
"""Seconds between two looks."""


class Told(Actor):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[PersonaFiles] = []
        self.heard = trio.Event()

    def on_receive(self, message: object) -> None:
        assert isinstance(message, ReplaceFiles)
        self.told.append(message.files)
        self.heard.set()


def away(_name: str) -> None:
    """Find nobody."""


def test_each_file_is_a_layer_and_none_has_to_be_there(tmp_path: Path) -> None:
    assert read_persona(tmp_path) == NO_FILES
    for name in FILES.values():
        (tmp_path / name).write_text(f"\ufeff{name}\r\nx\r\n", encoding="utf-8")
    files = read_persona(tmp_path)
    assert dict(files.named()) == {key: f"{name}\nx" for key, name in FILES.items()}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\n\n\xff", r"SOUL\.md:3: is not UTF-8 text"),
        (b"x" * (MOST_BYTES + 1), r"SOUL\.md: is longer than 65,536 bytes"),
    ],
)
def test_a_mistake_names_its_file(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "SOUL.md").write_bytes(content)
    with pytest.raises(SettingsError, match=words) as caught:
        read_persona(tmp_path)
    assert caught.value.hint
    (complaint,) = check_persona(("agents", "anna", "persona"), tmp_path)
    assert "SOUL.md" in complaint.text


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "GOALS.md").mkdir()
    with pytest.raises(SettingsError, match=r"GOALS\.md: cannot be read"):
        read_persona(tmp_path)


def test_a_file_that_nobody_reads_is_warned_of(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("for people")
    (tmp_path / "SOULS.md").write_text("x")
    (warning,) = check_persona(("agents", "anna", "persona"), tmp_path)
    assert warning.is_warning
    assert "SOULS.md is read by nobody" in warning.text
    assert "SOUL.md" in warning.hint


async def test_a_change_is_told_to_its_agent_and_a_mistake_is_not(
    tmp_path: Path,
) -> None:
    soul = tmp_path / "SOUL.md"
    soul.write_text("calm")
    metrics = Metrics()
    personas = Personas({"anna": tmp_path}, metrics)
    read = personas.reading("anna")
    anna = Told()
    async with open_system() as system:
        system.spawn(anna, name=names.agent("anna"))
        with trio.fail_after(10):
            soul.write_bytes(b"\xff\xff\xff\xff\xff")
            await personas.take_over(system.find, SOON)
            assert 'outcome="refused"' in metrics.render().decode()
            assert read().soul == "calm"
            soul.write_text("excited")
            await personas.take_over(system.find, SOON)
            await anna.heard.wait()
    assert anna.told == [PersonaFiles(soul="excited")]
    assert read() == anna.told[0]
    assert personas.reading("nobody")() == NO_FILES


async def test_a_change_while_the_agent_is_away_is_read_at_its_start(
    tmp_path: Path,
) -> None:
    (tmp_path / "IDENTITY.md").write_text("one")
    personas = Personas({"anna": tmp_path}, Metrics())
    read = personas.reading("anna")
    (tmp_path / "IDENTITY.md").unlink()
    (tmp_path / "GOALS.md").write_text("known")
    with trio.fail_after(10):
        await personas.take_over(away, SOON)
    assert read() == PersonaFiles(goals="known")
