"""What must fit together about the web page; asked by `settings.py`."""

from __future__ import annotations

import importlib.util
import re
from typing import TYPE_CHECKING

from actors.rules.globs import is_wild
from connectors.model_checks import is_loopback, unknown
from connectors.page_config import PageConfig
from runtime.config import Complaint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectors.config import AppConfig
    from connectors.model_checks import Way

DRAWS = "jinja2"
ORIGIN = re.compile(r"https?://[A-Za-z0-9.\[\]:-]+")


def check_page(app: AppConfig) -> Iterator[Complaint]:
    """Check every connector of this kind."""
    for name, connector in app.connectors.items():
        if isinstance(connector, PageConfig):
            way: Way = ("connectors", name)
            yield from check_package(way, DRAWS)
            yield from check_door(way, connector)
            for room, config in connector.rooms.items():
                for index, agent in enumerate(config.agents):
                    if not is_wild(agent):
                        place = (*way, "rooms", room, "agents", index)
                        yield from unknown(place, "agent", agent, app.agents)
                if not config.agents:
                    place = (*way, "rooms", room, "agents")
                    yield Complaint(place, "nobody is in this room", 'agents = ["*"]')


def check_package(way: Way, name: str) -> Iterator[Complaint]:
    """Complain of a package that came with a newer release and is not there yet."""
    if importlib.util.find_spec(name) is None:
        text = f"the package {name!r}, which draws the page, is not installed"
        yield Complaint(way, text, f"pip install {name}, or install Callboard again")


def check_door(way: Way, page: PageConfig) -> Iterator[Complaint]:
    """Refuse a page that others can reach without a certificate."""
    origin = page.origin
    if origin and not ORIGIN.fullmatch(origin):
        hint = 'write it as "https://callboard.example.org", without a path'
        yield Complaint((*way, "origin"), f"{origin!r} is no origin", hint)
    elif not is_loopback(page.host) and not origin.startswith("https:"):
        text = f"whoever can listen on the way to {page.host!r} could use your session"
        hint = 'host = "127.0.0.1", or a proxy with a certificate, named by origin'
        yield Complaint((*way, "host"), text, hint)
