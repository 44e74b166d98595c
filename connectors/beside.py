"""Files that settings name, and that are read into the company: who made what of them.

The settings' own files and those of secrets are not among them; neither are personas,
which are watched for themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.model_config import ScriptedModelConfig

if TYPE_CHECKING:
    from pathlib import Path

    from connectors.config import AppConfig
    from connectors.live_table import Step

SKILL = "SKILL.md"

MODELS: tuple[Step, ...] = ("catalogue",)
SKILLS: tuple[Step, ...] = ("sources", "services", "agents")

MOST_FOLDERS = 500
"""Skills in one folder that are watched."""


def files_beside(config: AppConfig) -> dict[Path, tuple[Step, ...]]:
    """Name these files, with who takes them over when they change; it blocks.

    A folder stands for what comes and goes in it.
    """
    found: dict[Path, tuple[Step, ...]] = {}
    if config.ledger.prices is not None:
        found[config.ledger.prices] = MODELS
    for model in config.models.values():
        if isinstance(model, ScriptedModelConfig):
            found[model.script] = MODELS
    if config.mcp_servers_file is not None:
        found[config.mcp_servers_file] = ()
    for folder in config.skills.folders:
        found[folder] = SKILLS
        for skill in skills_in(folder):
            found[skill] = found[skill / SKILL] = SKILLS
    return found


def skills_in(folder: Path) -> list[Path]:
    """List the folders in a folder; one that cannot be read has none."""
    try:
        inside = sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:
        return []
    return inside[:MOST_FOLDERS]
