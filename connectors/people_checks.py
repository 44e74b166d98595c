"""What must fit together in what is known of people; asked by `settings.py`."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from actors.rules.voice import SOURCE
from connectors.memory_config import HASHING, OFF, OllamaEmbedderConfig
from connectors.model_checks import check_address
from connectors.shipped import shipped_settings
from runtime.config import Complaint, close_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectors.config import AppConfig

CATALOGUES = "locale/*/LC_MESSAGES/callboard.po"


def check_people(app: AppConfig) -> Iterator[Complaint]:
    """Check the language people are spoken to in, and what they may choose."""
    found = shipped_settings().glob(CATALOGUES)
    spoken = sorted({SOURCE, *(path.parent.parent.name for path in found)})
    if app.people.language not in spoken:
        text = f"there is no translation into {app.people.language!r}"
        yield Complaint(("people", "language"), text, f"known: {', '.join(spoken)}")
    for index, pattern in enumerate(app.commands.models):
        if pattern != "*" and not any(fnmatchcase(x, pattern) for x in app.models):
            text = f"no model fits {pattern!r}"
            hint = close_to(pattern, app.models)
            yield Complaint(("commands", "models", index), text, hint)


def check_embedders(app: AppConfig) -> Iterator[Complaint]:
    """Check how embedders are called and reached."""
    for name, embedder in app.embedders.items():
        if name in {HASHING, OFF}:
            text = f"{name!r} already means something as memory.embedder"
            yield Complaint(("embedders", name), text, "give it another name")
        is_ollama = isinstance(embedder, OllamaEmbedderConfig)
        yield from check_address(
            ("embedders", name, "base_url"),
            embedder.base_url,
            has_key=embedder.api_key is not None,
            example=OllamaEmbedderConfig().base_url
            if is_ollama
            else "https://api.openai.com/v1",
        )


def is_other_than_folder(path: Path) -> bool:
    """Whether something else has the name; not if nobody may look: writing tells."""
    try:
        return path.exists() and not path.is_dir()
    except OSError:
        return False


def check_log_folder(folder: str) -> Iterator[Complaint]:
    """Check that daily logs can have their folder."""
    way, hint = ("memory", "folder"), 'name a folder, for example "var/memory"'
    path = Path(folder)
    if not folder.strip():
        yield Complaint(way, "names no folder", hint)
    elif is_other_than_folder(path):
        yield Complaint(way, f"{folder} is no folder", hint)
