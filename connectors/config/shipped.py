"""Where the files are that come with the program."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PRICES = "prices.toml"


def shipped_settings() -> Path:
    """Find the folder of settings files that come with the program."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "shipped"
    # In a checkout the folder stands beside the packages.
    return installed if installed.is_dir() else package.parent / "config"


def state_folder(folder: Path, environment: Mapping[str, str]) -> Path:
    """Say where relative paths of databases and other written things start.

    That is the folder of the settings file that names them. Beside the settings that
    come with the program nothing is written: then it is systemd's `STATE_DIRECTORY` or,
    by the XDG base directories, `callboard` in the folder for state.
    """
    if not folder.resolve().is_relative_to(shipped_settings().resolve()):
        return folder
    if given := environment.get("STATE_DIRECTORY", "").partition(":")[0]:
        return Path(given).absolute()
    state = environment.get("XDG_STATE_HOME", "")
    # Source: XDG base directory specification 0.8: a relative one is ignored.
    is_given = Path(state).is_absolute()
    base = Path(state) if is_given else Path("~/.local/state").expanduser()
    return base / "callboard"


def shipped_prices() -> Path:
    """Find the price list that comes with the program."""
    return shipped_settings() / PRICES
