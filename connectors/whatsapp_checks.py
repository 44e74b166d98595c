"""What must fit together about WhatsApp's numbers; asked by `settings.py`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from connectors.config import HttpConfig
from connectors.model_checks import check_address, unknown
from connectors.whatsapp_config import WhatsAppConfig
from runtime.config import Complaint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectors.config import AppConfig
    from connectors.model_checks import Way

# Source: Meta, "App secret": 32 signs of a hexadecimal number.
APP_SECRET = re.compile(r"[0-9a-fA-F]{32}")

EXAMPLE = "https://graph.facebook.com/v24.0"


def check_whatsapp(app: AppConfig) -> Iterator[Complaint]:
    """Check every connector of this kind."""
    for name, connector in app.connectors.items():
        if isinstance(connector, WhatsAppConfig):
            way: Way = ("connectors", name)
            yield from check_way_in(way, app)
            yield from check_app(way, connector)
            yield from check_accounts(way, connector, app)


def check_way_in(way: Way, app: AppConfig) -> Iterator[Complaint]:
    """Refuse numbers that Meta could never call."""
    if not any(isinstance(each, HttpConfig) for each in app.connectors.values()):
        text = "WhatsApp calls us by the HTTP server, and there is none"
        yield Complaint(way, text, 'add [connectors.http] with kind = "http"')


def check_app(way: Way, config: WhatsAppConfig) -> Iterator[Complaint]:
    """Refuse a secret that is none: anybody could sign with it."""
    if not APP_SECRET.fullmatch(config.app_secret.reveal().strip()):
        text = "is no app secret: it has 32 signs, of 0 to 9 and a to f"
        hint = "copy it from App settings > Basic; it is no access token"
        yield Complaint((*way, "app_secret"), text, hint)
    place = (*way, "graph_url")
    yield from check_address(place, config.graph_url, has_key=True, example=EXAMPLE)


def check_accounts(
    way: Way, config: WhatsAppConfig, app: AppConfig
) -> Iterator[Complaint]:
    """Check whose numbers there are."""
    taken: dict[str, str] = {}
    for agent, account in config.accounts.items():
        here = (*way, "accounts", agent)
        yield from unknown(here, "agent", agent, app.agents)
        number = account.phone_number_id
        if not (number.isascii() and number.isdigit()):
            text = f"{number!r} is no id of a number: it has digits only"
            hint = "copy the phone number ID from WhatsApp > API Setup"
            yield Complaint((*here, "phone_number_id"), text, hint)
        other = taken.setdefault(number, agent)
        if other != agent:
            text = f"{number} is the number of {other!r} already"
            hint = "give each agent a number of its own"
            yield Complaint((*here, "phone_number_id"), text, hint)
