"""Reads what the runtime says in other languages: `config/locale/<language>/`.

Plain gettext catalogues (`LC_MESSAGES/callboard.po`), so that whoever translates has
their usual tools; read as they are, without a step in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polib

from actors.rules.voice import SOURCE, Voices
from connectors.shipped import shipped_settings

if TYPE_CHECKING:
    from pathlib import Path

LOCALE = "locale"
CATALOGUE = "LC_MESSAGES/callboard.po"


def load_voices(default: str = SOURCE, folder: Path | None = None) -> Voices:
    """Read all catalogues there are.

    Args:
        default: what is spoken with those whose language is not known.
        folder: where they lie; None: those that come with the program.
    """
    folder = folder or shipped_settings() / LOCALE
    found = {
        path.parent.parent.name: read_catalogue(path)
        for path in sorted(folder.glob(f"*/{CATALOGUE}"))
    }
    return Voices(found, default)


def read_catalogue(path: Path) -> dict[str, str]:
    """Read the translations of one language; what is in doubt counts as missing."""
    entries = polib.pofile(str(path), encoding="utf-8")
    return {
        entry.msgid: entry.msgstr
        for entry in entries.translated_entries()
        if not entry.fuzzy
    }
