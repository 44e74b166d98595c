"""What must fit together about bots on Discord; asked by `settings.py`."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from connectors.discord_config import DiscordConfig
from connectors.model_checks import check_address, unknown
from runtime.config import Complaint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectors.config import AppConfig
    from connectors.model_checks import Way

LIBRARY = "discord"

API = "https://discord.com/api/v10"
GATEWAY = "wss://gateway.discord.gg"
MOST_ID_DIGITS = 20


def check_discord(app: AppConfig) -> Iterator[Complaint]:
    """Check every connector of this kind."""
    for name, connector in app.connectors.items():
        if isinstance(connector, DiscordConfig):
            way: Way = ("connectors", name)
            if importlib.util.find_spec(LIBRARY) is None:
                text = "it needs discord.py, which is not installed"
                yield Complaint(way, text, "pip install 'callboard[discord]'")
            yield from check_bots(way, connector, app)
            yield from check_addresses(way, connector)
            yield from check_owners(name, app)


def check_bots(way: Way, config: DiscordConfig, app: AppConfig) -> Iterator[Complaint]:
    """Check whose bots there are."""
    taken: dict[str, str] = {}
    for agent, account in config.accounts.items():
        here = (*way, "accounts", agent)
        yield from unknown(here, "agent", agent, app.agents)
        if account.token is None:
            hint = 'add token = { env = "DISCORD_TOKEN" }'
            yield Complaint(here, "the bot has no token", hint)
            continue
        other = taken.setdefault(account.token.reveal().strip(), agent)
        if other != agent:
            text = f"this is the token of {other!r} already"
            yield Complaint((*here, "token"), text, "give each agent its own bot")


def check_addresses(way: Way, config: DiscordConfig) -> Iterator[Complaint]:
    """Check where the bots go with their tokens."""
    yield from check_address((*way, "api"), config.api, has_key=True, example=API)
    place = (*way, "gateway")
    scheme, _, rest = config.gateway.partition("://")
    as_http = f"{'https' if scheme == 'wss' else 'http'}://{rest}"
    if scheme not in {"ws", "wss"}:
        text = f"{config.gateway!r} is no ws or wss address"
        yield Complaint(place, text, f'for example: gateway = "{GATEWAY}"')
    else:
        yield from check_address(place, as_http, has_key=True, example=GATEWAY)
    for index, address in enumerate(config.files):
        place = (*way, "files", index)
        yield from check_address(place, address, has_key=False, example=API)


def check_owners(name: str, app: AppConfig) -> Iterator[Complaint]:
    """Warn of owners that are no ids: names can be taken by anybody."""
    mine = f"{name}/"
    for index, owner in enumerate(app.owners):
        if not owner.startswith(mine):
            continue
        known = owner.removeprefix(mine)
        if not (known.isascii() and known.isdigit() and len(known) <= MOST_ID_DIGITS):
            text = f"{known!r} is no Discord id, so nobody is this owner"
            hint = "switch on Developer Mode in Discord, then right-click yourself"
            yield Complaint(
                ("owners", index), text, f"{hint}: Copy User ID", is_warning=True
            )
