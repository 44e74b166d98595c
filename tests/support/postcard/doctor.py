"""What `callboard doctor` asks about a desk."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import httpx

from connectors.admin.probes import ABOUT, Finding, Probe
from tests.support.postcard.office import OFFICES, Office
from tests.support.postcard.platform import PostcardConfig


def probes(
    name: str, config: PostcardConfig, _network: httpx.AsyncBaseTransport | None = None
) -> Iterator[Probe]:
    """Give the probe of one desk."""
    place = f"connectors.{name}"
    yield Probe(ABOUT, place, partial(look, place, config))


async def look(place: str, config: PostcardConfig) -> list[Finding]:
    """Say whether the office is open."""
    if OFFICES.get(config.office, Office()).is_open:
        return [Finding("ok", ABOUT, f"{place}: {config.office} is open")]
    text = f"{place}: {config.office} is closed"
    return [Finding("wrong", ABOUT, text, "come again tomorrow")]
