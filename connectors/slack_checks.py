"""What must fit together about Slack's apps; asked by `settings.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.config import HttpConfig
from connectors.model_checks import check_address, unknown
from connectors.slack_config import SlackConfig
from runtime.config import Complaint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectors.config import AppConfig
    from connectors.model_checks import Way
    from connectors.slack_config import SlackAccountConfig
    from runtime.secret import Secret

EXAMPLE = "https://slack.com/api/"

LEAST_SECRET = 16
"""Characters of a signing secret; Slack's have 32."""


def check_slack(app: AppConfig) -> Iterator[Complaint]:
    """Check every connector of this kind."""
    for name, connector in app.connectors.items():
        if isinstance(connector, SlackConfig):
            yield from check_workspace(("connectors", name), connector, app)


def check_workspace(
    way: Way, config: SlackConfig, app: AppConfig
) -> Iterator[Complaint]:
    """Check one workspace's apps."""
    place = (*way, "base_url")
    yield from check_address(place, config.base_url, has_key=True, example=EXAMPLE)
    taken: dict[str, str] = {}
    for agent, account in config.accounts.items():
        here = (*way, "accounts", agent)
        yield from unknown(here, "agent", agent, app.agents)
        yield from check_account(here, account, app)
        other = taken.setdefault(account.bot_token.reveal(), agent)
        if other != agent:
            text = f"this is the bot_token of {other!r} already"
            yield Complaint((*here, "bot_token"), text, "give each agent its own app")


def check_account(
    way: Way, account: SlackAccountConfig, app: AppConfig
) -> Iterator[Complaint]:
    """Check the tokens of one app, of which none is told."""
    yield from check_token((*way, "bot_token"), account.bot_token, "xoxb-", "Bot User")
    if account.app_token is not None:
        place = (*way, "app_token")
        yield from check_token(place, account.app_token, "xapp-", "App-Level")
    secret = account.signing_secret
    if account.app_token is None and secret is None:
        hint = 'add app_token = { env = "SLACK_APP_TOKEN" } for Socket Mode'
        yield Complaint(way, "the app has neither app_token nor signing_secret", hint)
    elif account.app_token is not None and secret is not None:
        text = "the app has an app_token and a signing_secret: it hears by one of them"
        yield Complaint(way, text, "take one of the two out")
    elif secret is not None:
        yield from check_signing_secret(way, secret, app)


def check_token(
    way: Way, token: Secret, prefix: str, called: str
) -> Iterator[Complaint]:
    """Complain of what is another kind of token."""
    if not token.reveal().strip().startswith(prefix):
        hint = f"take the app's {called} token, which begins with {prefix}"
        yield Complaint(way, f"it does not begin with {prefix}", hint)


def check_signing_secret(
    way: Way, secret: Secret, app: AppConfig
) -> Iterator[Complaint]:
    """Check what calls are verified by, and that there is who takes them."""
    if len(secret.reveal().strip()) < LEAST_SECRET:
        text = f"it has fewer than {LEAST_SECRET} characters"
        hint = "take the app's Signing Secret, under Basic Information"
        yield Complaint((*way, "signing_secret"), text, hint)
    if not any(isinstance(each, HttpConfig) for each in app.connectors.values()):
        text = "without a connector of kind http, nobody takes Slack's calls"
        hint = 'add [connectors.http] with kind = "http", or use app_token'
        yield Complaint((*way, "signing_secret"), text, hint)
