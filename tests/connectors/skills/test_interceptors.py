"""A skill's own program is asked only if the operator has listed the skill."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from actors.config.agents import AgentConfig
from connectors.app.hooks import all_hooks
from connectors.config.app import AppConfig
from connectors.config.mcp import SkillsConfig
from connectors.settings.load import check, check_further
from connectors.skills.checks import command_of
from connectors.skills.folder import read_skill
from runtime.errors import SettingsError

HEAD = "---\nname: gate\ndescription: Opens the gate.\n{more}\n---\nAsk which gate.\n"


def skill(folder: Path, more: str) -> Path:
    path = folder / "gate"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    (path / "SKILL.md").write_text(HEAD.format(more=more))
    return path


def settings(folder: Path, *listed: str, **skills: Any) -> AppConfig:
    agents = {
        "anna": AgentConfig(skills=("*",)),
        "ben": AgentConfig(skills=()),
    }
    own = SkillsConfig(folders=(folder,), interceptors=listed, **skills)
    return AppConfig(agents=agents, skills=own)


def warnings(config: AppConfig) -> str:
    return "\n".join(each.text for each in (*check(config), *check_further(config, {})))


@pytest.mark.parametrize(
    ("more", "command"),
    [
        ("interceptor: python3 gate.py", ("python3", "gate.py")),
        ("interceptor: python3 'my gate.py'", ("python3", "my gate.py")),
        ("metadata:\n  interceptor: ./gate", ("./gate",)),
        ("", ()),
    ],
)
def test_the_command_stands_in_the_head(
    more: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    assert command_of(read_skill(skill(tmp_path, more), 30_000)) == command


@pytest.mark.parametrize("more", ["interceptor: 'python3", "interceptor: \"''\""])
def test_what_is_no_command_is_told(more: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        command_of(read_skill(skill(tmp_path, more), 30_000))


def test_who_is_listed_is_asked_about_its_own_agents(tmp_path: Path) -> None:
    path = skill(tmp_path, f"interceptor: {sys.executable} gate.py")
    (hook,) = all_hooks(settings(tmp_path, "gate")).values()
    assert hook.events == ("message_heard",)
    assert (hook.agents, hook.folder) == (("anna",), path)
    assert hook.command == (sys.executable, "gate.py")


def test_who_is_not_listed_is_warned_of_and_not_asked(tmp_path: Path) -> None:
    skill(tmp_path, "interceptor: python3 gate.py")
    config = settings(tmp_path)
    assert all_hooks(config) == {}
    assert "brings an interceptor; it is not asked" in warnings(config)


def test_a_name_that_no_skill_has_is_a_mistake(tmp_path: Path) -> None:
    skill(tmp_path, "")
    assert "no skill fits 'door'" in warnings(settings(tmp_path, "door"))
