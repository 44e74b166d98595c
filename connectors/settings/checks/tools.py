"""Checks where agents work, and how they search the web."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from connectors.config.checks import Way, check_address
from connectors.fetch.addresses import read_allowed
from connectors.files.blobs import folder_of
from runtime.config.loader import Complaint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectors.config.app import AppConfig

OF_THE_KERNEL = (Path("/proc"), Path("/sys"), Path("/dev"))


def check_workspace(app: AppConfig) -> Iterator[Complaint]:
    """Check that agents do not work in a folder that holds the database."""
    folder, database = Path(app.workspace.path), Path(app.store.path)
    copies = folder_of(app)
    if database.resolve().is_relative_to(folder.resolve()):
        text = f"{folder} holds the database ({database})"
        hint = "give the workspaces a folder of their own, for example var/workspace"
        yield Complaint(("workspace", "path"), text, hint)
    elif copies.resolve().is_relative_to(folder.resolve()):
        text = f"{folder} holds the copies of files that agents send ({copies})"
        hint = "give them a folder of their own, or leave files.path empty"
        yield Complaint(("files", "path"), text, hint)


def check_readable(paths: tuple[Path, ...]) -> Iterator[Complaint]:
    """Check what all programs may read.

    Why: with these no sandbox holds in its own trial, so that none would be in force,
    or programs would see what it hides.
    """
    of_each_program = Path(tempfile.gettempdir()).resolve()
    for index, path in enumerate(paths):
        way: Way = ("sandbox", "readable", index)
        real = path.resolve()
        if not real.exists():
            hint = "the path starts at the folder of the settings file"
            yield Complaint(way, f"there is no file or folder {path}", hint)
        elif of_each_program.is_relative_to(real):
            text = f"{path} holds {of_each_program}, of which each program has its own"
            yield Complaint(way, text, "name the folders in it that are needed")
        elif any(real.is_relative_to(each) for each in OF_THE_KERNEL):
            text = f"{path} tells of other programs, Callboard with its secrets among"
            yield Complaint(way, f"{text} them", "take it out")


def check_fetch(app: AppConfig) -> Iterator[Complaint]:
    """Check the exceptions from what may be fetched."""
    for index, entry in enumerate(app.fetch.allow):
        try:
            read_allowed(entry)
        except ValueError as error:
            hint = 'for example "10.1.0.0/16", "10.1.2.3" or "search.lan:8080"'
            yield Complaint(("fetch", "allow", index), str(error), hint)


def check_web_search(app: AppConfig) -> Iterator[Complaint]:
    """Check that the search engine can be asked."""
    search = app.web_search
    has_key = search.api_key is not None
    if search.kind == "brave" and not has_key:
        hint = 'add api_key = { env = "BRAVE_API_KEY" }'
        yield Complaint(("web_search",), "Brave asks for a key", hint)
    if search.kind == "searxng" or (search.kind == "brave" and search.base_url):
        yield from check_address(
            ("web_search", "base_url"),
            search.base_url,
            has_key=has_key,
            example="http://127.0.0.1:8888",
        )
