"""What Matrix is to the rest of the program: settings, checks, limits."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct

from actors.config.access import AccessConfig
from actors.config.values import Name, Pace, Seconds
from actors.rules.prompt.texts import MEDIA_MARKS, ReplyStyle
from connectors.chat.platforms import Platform, PlatformLimits, always
from connectors.config.app import AppConfig, ChatConfig
from connectors.config.checks import Way, check_address, unknown
from runtime.config.loader import Complaint, GivenSecret


class MatrixAccountConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The account of one agent: a token or a password, not both."""

    user: Annotated[str, Meta(min_length=4, max_length=255)]
    """The whole id: `@anna:example.org`."""

    access_token: GivenSecret | None = None
    """Of a login made for this program alone."""

    password: GivenSecret | None = None
    """With it the account logs in at each start, always as the same device."""


class MatrixConfig(ChatConfig, frozen=True, kw_only=True, tag="matrix"):
    """One homeserver, and which agents have accounts there."""

    homeserver: Annotated[str, Meta(min_length=1)]
    """Its address, as clients are given it."""

    accounts: Annotated[dict[Name, MatrixAccountConfig], Meta(min_length=1)]
    """By the agent's name."""

    invites: Literal["nobody", "owners", "listed", "anyone"] = "owners"
    """Whose invitations are accepted: nobody's, the `owners`', also those of
    `invite_from`, or everybody's. The others are declined, with the reason. With
    `owners`, everybody may invite to a direct chat if strangers may write there or ask
    to be let in; see `takes_strangers`. Except with `nobody`, accounts also go along to
    where a room that they are in was moved."""

    invite_from: tuple[str, ...] = ()
    """With `listed`: ids of people (`@zoe:example.org`), or `*:example.org`."""

    @property
    def takes_strangers(self) -> bool:
        """Return whether anybody may begin a direct chat where owners invite.

        Not where everybody may write in groups and only some in direct chats: a room
        may be called direct and be none.
        """
        access = self.access or AccessConfig()
        if access.people == "pairing":
            return access.group_people == "admitted"
        return access.people == "anyone"

    status: Annotated[str, Meta(max_length=250)] = ""
    """What people see beside the accounts' names; empty: nothing is said."""

    mark_read: bool = True
    """Whether people see up to where their messages were read (read receipts)."""

    poll_timeout: Annotated[float, Meta(gt=0, le=120)] = 30.0
    """Seconds the homeserver may hold a request for news."""

    request_timeout: Seconds = 30.0
    """Seconds any other request may take in all."""

    backfill: Annotated[int, Meta(ge=0, le=10_000)] = 500
    """Most messages of one room that are fetched after a gap."""

    pace: Pace = 0.0
    draft_pace: Pace = 5.0
    """Least seconds between two edits of one message while it is being written."""


# Source: spec, appendix "User Identifiers", the historical ones, too.
USER_ID = re.compile(r"@[!-9;-~]+:[A-Za-z0-9.\[\]:-]+")

EXAMPLE = "https://matrix.example.org"


def check(mine: Mapping[str, MatrixConfig], app: AppConfig) -> Iterator[Complaint]:
    """Check every connector of this kind."""
    for name, connector in mine.items():
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
    is_pairing = config.access is not None and config.access.people == "pairing"
    reached = config.invites == "owners" and config.takes_strangers
    if is_pairing and not (reached or config.invites == "anyone"):
        text = "strangers cannot begin a direct chat, so they are never shown a code"
        hint = 'set invites = "owners" and access.group_people = "admitted"'
        yield Complaint(place, text, hint, is_warning=True)
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


# Source: Matrix, specification "Size limits": an event has at most 65,536 bytes of
# canonical JSON; Synapse took a body of 64,500 (measured). One letter may take 6 bytes,
# and HTML may stand beside the text. Synapse's default rate is 10 at once and then one
# in 5 seconds, edits included; many servers lift it for bots, so settings say. The
# largest file is what each server says (`m.upload.size`).
PLATFORM = Platform(
    package="connectors.chat.matrix",
    config=MatrixConfig,
    check=check,
    only_calls=always,
    name="this Matrix server",
    limits=PlatformLimits(
        text=8_000,
        part=8_000,
        caption=8_000,
        typing_for=15.0,
    ),
    reply_style=ReplyStyle(
        "You write on Matrix. Markdown is shown, with headings, lists, code and"
        " tables.",
        MEDIA_MARKS,
    ),
    is_public=True,
    needs_owners=True,
)
