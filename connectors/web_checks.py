"""What must fit together about web channels; asked by `settings.py`."""

from __future__ import annotations

import importlib.util
import re
from typing import TYPE_CHECKING

from connectors.model_checks import is_loopback
from connectors.web_config import WebConfig
from runtime.config import Complaint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectors.config import AppConfig, HttpConfig
    from connectors.model_checks import Way
    from connectors.web_config import WebKeyConfig

EXTRA = "socketio"
"""What the extra brings along."""

ORIGIN = re.compile(r"https?://[A-Za-z0-9.\[\]:-]+")
ENTITY = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def check_web(app: AppConfig) -> Iterator[Complaint]:
    """Check every connector of this kind."""
    for name, connector in app.connectors.items():
        if isinstance(connector, WebConfig):
            way: Way = ("connectors", name)
            if importlib.util.find_spec(EXTRA) is None:
                text = "the extra 'web' is not installed"
                yield Complaint(way, text, "pip install 'callboard[web]'")
            yield from check_origins(way, connector)
            yield from check_keys(way, connector)


def check_origins(way: Way, config: WebConfig) -> Iterator[Complaint]:
    """Check which pages may ask."""
    is_open = config.api_key is None and not config.keys
    for index, origin in enumerate(config.origins):
        place = (*way, "origins", index)
        if origin == "*" and is_open:
            text = "without a key, every web page could use the agents"
            yield Complaint(place, text, "set api_key, or list the pages")
        elif origin != "*" and not ORIGIN.fullmatch(origin):
            text = f"{origin!r} is no origin"
            hint = 'write it as "https://chat.example.org", without a path'
            yield Complaint(place, text, hint)


def check_keys(way: Way, config: WebConfig) -> Iterator[Complaint]:
    """Check that each key is one of its own, and can do something."""
    known: list[tuple[str, WebKeyConfig]] = []
    for name, each in config.keys.items():
        here = (*way, "keys", name)
        if each.key == config.api_key:
            yield Complaint(here, "this key is the api_key", "make another one")
        for other, earlier in known:
            if earlier.key == each.key:
                text = f"this key is that of {other!r}, too"
                yield Complaint(here, text, "make one for each")
        known.append((name, each))
        if not each.scopes:
            text = "this key may do nothing"
            yield Complaint((*here, "scopes"), text, 'for example ["read"]')
        if "operate" in each.scopes and (each.entity or "*" not in each.channels):
            text = "the log and the settings tell of everybody"
            hint = 'take "operate" out, or leave entity and channels as they are'
            yield Complaint((*here, "scopes"), text, hint)
        if each.entity and not ENTITY.fullmatch(each.entity):
            text = f"{each.entity!r} is no UUID"
            hint = "write the id by which clients know this person"
            yield Complaint((*here, "entity"), text, hint)


def check_door(way: Way, http: HttpConfig | WebConfig) -> Iterator[Complaint]:
    """Refuse a server that others can reach and anybody may use."""
    keys = http.keys if isinstance(http, WebConfig) else {}
    if http.api_key is None and not keys and not is_loopback(http.host):
        text = (
            f"without api_key, everybody who reaches {http.host!r} may use the agents"
        )
        hint = 'add api_key = { env = "CALLBOARD_API_KEY" }, or host = "127.0.0.1"'
        yield Complaint((*way, "host"), text, hint)
