"""Where the files are that come with the program."""

from __future__ import annotations

from pathlib import Path

PRICES = "prices.toml"


def shipped_settings() -> Path:
    """Find the folder of settings files that come with the program."""
    package = Path(__file__).resolve().parent
    installed = package / "shipped"
    # In a checkout the folder stands beside the packages.
    return installed if installed.is_dir() else package.parent / "config"


def shipped_prices() -> Path:
    """Find the price list that comes with the program."""
    return shipped_settings() / PRICES
