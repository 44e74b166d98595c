"""What Slack is to the rest of the program: settings, checks, limits."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from msgspec import Meta, Struct

from actors.config.values import Name, Pace
from actors.rules.prompt.texts import MEDIA_MARKS, ReplyStyle
from actors.rules.text.measure import TABLE_ROW, Measure
from connectors.chat.platforms import MB, Platform, PlatformLimits
from connectors.config.app import AppConfig, ChatConfig
from connectors.config.checks import Way, check_address, unknown
from runtime.config.loader import Complaint, GivenSecret
from runtime.secret import Secret


class SlackAccountConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The app of one agent. It hears by `app_token`, or by `signing_secret`."""

    bot_token: GivenSecret
    """`xoxb-…`, of the app's installation: the app writes by it."""

    app_token: GivenSecret | None = None
    """`xapp-…`: the app opens a connection to Slack by it (Socket Mode)."""

    signing_secret: Secret | None = None
    """With it Slack calls the HTTP server (Events API), and each call is checked."""


class SlackConfig(ChatConfig, frozen=True, kw_only=True, tag="slack"):
    """One workspace, and which agents have apps there."""

    accounts: Annotated[dict[Name, SlackAccountConfig], Meta(min_length=1)]
    """By the agent's name."""

    base_url: Annotated[str, Meta(min_length=1)] = "https://slack.com/api/"
    """Where the Web API is, or a proxy before it. Files of messages are fetched from
    there and from Slack's own hosts; files of agents go wherever it says."""

    slash_command: Annotated[str, Meta(pattern=r"^/[a-z0-9_-]{1,31}$")] = "/callboard"
    """The slash command whose text is a command itself: `/callboard help` is `/help`.
    Any other counts as it is written."""

    start_threads: bool = False
    """Whether what is written in a channel is answered in a thread of its own, which
    is a conversation by itself; false: in the channel."""

    backfill: Annotated[int, Meta(ge=0, le=10_000)] = 500
    """Most messages of one channel that are fetched after a gap; 0: none."""

    pace: Pace = 1.0
    """Least seconds between two messages in one channel, its threads included."""

    draft_pace: Pace = 1.5
    """Least seconds between two edits of one message while it is being written."""


EXAMPLE = "https://slack.com/api/"

LEAST_SECRET = 16
"""Characters of a signing secret; Slack's have 32."""


def check(mine: Mapping[str, SlackConfig], app: AppConfig) -> Iterator[Complaint]:
    """Check every connector of this kind."""
    for name, connector in mine.items():
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
        if not account.bot_token.is_set:
            continue
        other = taken.setdefault(account.bot_token.reveal(), agent)
        if other != agent:
            text = f"this is the bot_token of {other!r} already"
            yield Complaint((*here, "bot_token"), text, "give each agent its own app")


def check_account(
    way: Way, account: SlackAccountConfig, app: AppConfig
) -> Iterator[Complaint]:
    """Check the tokens of one app; no complaint shows a token."""
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
    """Complain of a token of another kind."""
    if token.is_set and not token.reveal().strip().startswith(prefix):
        hint = f"take the app's {called} token, which begins with {prefix}"
        yield Complaint(way, f"it does not begin with {prefix}", hint)


def check_signing_secret(
    way: Way, secret: Secret, app: AppConfig
) -> Iterator[Complaint]:
    """Check the secret that verifies Slack's calls, and that a server takes them."""
    if secret.is_set and len(secret.reveal().strip()) < LEAST_SECRET:
        text = f"it has fewer than {LEAST_SECRET} characters"
        hint = "take the app's Signing Secret, under Basic Information"
        yield Complaint((*way, "signing_secret"), text, hint)
    if not app.has_http:
        text = "without a connector of kind http, nobody takes Slack's calls"
        hint = 'add [connectors.http] with kind = "http", or use app_token'
        yield Complaint((*way, "signing_secret"), text, hint)


def uses_sockets(config: SlackConfig) -> bool:
    """Whether all apps hear over a connection of their own, and none is called."""
    return all(each.signing_secret is None for each in config.accounts.values())


# Source: Slack, "chat.postMessage": 4,000 characters are advised, beyond 40,000 the
# rest is cut off with no more than a warning (measured); "chat.update" refuses more
# than 4,000 (`msg_too_long`), so that one length holds for both. "Rate limits": one
# message a second and channel; edits are tier 3, 50 a minute. "Working with files": 1
# GB.
PLATFORM = Platform(
    package="connectors.chat.slack",
    config=SlackConfig,
    retired={"ping_every": "Socket Mode is looked after every 15 seconds"},
    check=check,
    only_calls=uses_sockets,
    name="Slack",
    extra="slack",
    limits=PlatformLimits(
        measure=Measure(
            {"&": 5, "<": 4, ">": 4, "@": 2},
            {"&": 5, "<": 4, ">": 4, "@": 2},
            is_utf16=True,
            table_row=TABLE_ROW,
        ),
        text=4_000,
        part=3_800,
        caption=4_000,
        upload_bytes=1_000 * MB,
        image_bytes=1_000 * MB,
    ),
    dialect="Slack",
    reply_style=ReplyStyle(
        "You write on Slack. Bold, italics, lists, quotes and code in Markdown are"
        " shown; headings and tables are not.",
        MEDIA_MARKS,
    ),
    is_public=True,
    needs_owners=True,
)
