"""What must fit together about Matrix accounts; asked by `settings.py`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from connectors.matrix_config import MatrixConfig
from connectors.model_checks import check_address, unknown
from runtime.config import Complaint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectors.config import AppConfig
    from connectors.model_checks import Way

# Source: spec, appendix "User Identifiers", the historical ones, too.
USER_ID = re.compile(r"@[!-9;-~]+:[A-Za-z0-9.\[\]:-]+")

EXAMPLE = "https://matrix.example.org"


def check_matrix(app: AppConfig) -> Iterator[Complaint]:
    """Check every connector of this kind."""
    for name, connector in app.connectors.items():
        if isinstance(connector, MatrixConfig):
            yield from check_homeserver(("connectors", name), connector, app)


def check_homeserver(
    way: Way, config: MatrixConfig, app: AppConfig
) -> Iterator[Complaint]:
    """Check one homeserver's accounts."""
    place = (*way, "homeserver")
    yield from check_address(place, config.homeserver, has_key=True, example=EXAMPLE)
    taken: dict[str, str] = {}
    for agent, account in config.accounts.items():
        here = (*way, "accounts", agent)
        yield from unknown(here, "agent", agent, app.agents)
        yield from check_user((*here, "user"), account.user)
        other = taken.setdefault(account.user, agent)
        if other != agent:
            text = f"{account.user} is the account of {other!r} already"
            yield Complaint((*here, "user"), text, "give each agent its own account")
        if account.access_token is None and account.password is None:
            hint = 'add access_token = { env = "MATRIX_TOKEN" }'
            yield Complaint(here, "the account has no access_token", hint)
        elif account.access_token is not None and account.password is not None:
            text = "the account has an access_token and a password"
            yield Complaint(here, text, "take one of the two out")
    yield from check_invites(way, config, app)


def check_invites(
    way: Way, config: MatrixConfig, app: AppConfig
) -> Iterator[Complaint]:
    """Check who may invite."""
    for index, listed in enumerate(config.invite_from):
        place = (*way, "invite_from", index)
        yield from check_user(place, listed.replace("*:", "@any:", 1))
    place = (*way, "invites")
    if config.invite_from and config.invites != "listed":
        text = f"invite_from counts for nothing with {config.invites!r}"
        yield Complaint(place, text, 'set invites = "listed"', is_warning=True)
    if config.invites == "owners" and not any(
        owner.startswith(f"{way[-1]}/") for owner in app.owners
    ):
        text = "no owner has an account here, so nobody can invite the agents"
        hint = f'add "{way[-1]}/@you:example.org" to owners, or set invites'
        yield Complaint(place, text, hint, is_warning=True)


def check_user(way: Way, user: str) -> Iterator[Complaint]:
    """Complain of what is no whole id."""
    if not USER_ID.fullmatch(user):
        text = f"{user!r} is no Matrix id"
        yield Complaint(way, text, 'write it whole, as in "@anna:example.org"')
