"""`callboard pairing`: who asks to be let in, who was, and why somebody may write.

`callboard route explain` shares the words for the decisions.
"""

from __future__ import annotations

import click
import msgspec

from actors.messages.inbound import Address, Inbound
from actors.people import pairing_rows
from actors.people.access import (
    AccessPolicy,
    AccessRuleResult,
    Admit,
    Decision,
    OfferPairing,
    admit,
    policy,
)
from actors.people.pairing_rows import (
    COMMAND_LINE,
    GUEST,
    MOST_GUESTS,
    PAIRING,
    PairingRows,
)
from actors.people.pairing_rules import Guest, PairingRequest, denied, is_open
from actors.rules.groups.access import agent_access, may_use
from actors.rules.text.codes import plain, shown
from actors.rules.text.secrets import AuditRedaction
from connectors.admin.display import when
from connectors.commands.common.database import (
    DatabaseChoice,
    database_of_store,
    database_options,
    is_stored,
)
from connectors.commands.common.output import (
    FAILED,
    complain,
    rows_options,
    say,
    say_json,
    say_rows,
    table,
    with_slash,
)
from connectors.config.app import AppConfig
from connectors.config.checks import unknown
from connectors.settings.checks.access import access_of, approvers
from runtime.clock import SystemClock
from runtime.ids import IdSource
from runtime.store.database import Database
from runtime.store.rows import Commit


class AccessReport(msgspec.Struct, frozen=True):
    """Whether somebody may write, and to whom."""

    outcome: str
    """`admitted`, `refused`, or `told a code`."""

    reason: str
    verdicts: tuple[AccessRuleResult, ...]
    agents: dict[str, str]
    """By name: why they may use each; those they may not begin with `not: `."""


@click.command()
@database_options
@click.argument("account", type=with_slash)
@click.option("--group", metavar="CHAT", default="", help="Written in this group.")
@click.option("--role", "roles", multiple=True, help="What they are there; again.")
@rows_options
def explain(
    choice: DatabaseChoice,
    account: str,
    group: str,
    roles: tuple[str, ...],
    *,
    as_json: bool,
) -> int:
    """Say whether an account, CONNECTOR/SENDER, may write, to which agents, and why."""
    settings = choice.settings
    connector, slash, sender = account.partition("/")
    if settings is None or not (connector and slash and sender):
        raise click.UsageError("write CONNECTOR/SENDER, and name the settings (-c)")
    app = settings.value
    for complaint in unknown((), "connector", connector, app.connectors):
        complain(f"{complaint.text}; {complaint.hint}")
        return FAILED
    inbound = as_inbound(connector, sender, group, roles)
    is_guest = is_let_in(database_of_store(choice.store), account)
    told = explained(app, inbound, is_guest=is_guest)
    if as_json:
        say_json(told)
        return 0
    say(f"{account}: {told.outcome} ({told.reason})")
    for line in table(("RULE", "SAYS", "WHY"), map(verdict_cells, told.verdicts)):
        say(line)
    for name, why in told.agents.items():
        say(f"agent {name}: {why}")
    return 0


def as_inbound(
    connector: str, sender: str, group: str, roles: tuple[str, ...]
) -> Inbound:
    """Make the message that is asked about."""
    return Inbound(
        id="asked",
        platform="",
        platform_id="asked",
        address=Address(connector, group or sender),
        sender_id=sender,
        sender_name=sender,
        text="",
        received_at=0.0,
        is_direct=not group,
        roles=roles,
    )


def is_let_in(database: Database, account: str) -> bool:
    """Whether an owner has let an account in; without a database nobody has."""
    if not database.exists():
        return False
    with database.inspect() as rows:
        return any(each.id == account for each in rows.entries(GUEST))


def policy_of(app: AppConfig, connector: str) -> AccessPolicy | None:
    """Give what decides about one connector; None: its edge knows its people."""
    access = access_of(app.connectors[connector])
    return None if access is None else policy(access, app.owners)


def explained(app: AppConfig, inbound: Inbound, *, is_guest: bool) -> AccessReport:
    """Decide as the running server would."""
    rules = policy_of(app, inbound.address.connector)
    decision = admit(inbound, rules, is_paired=is_guest)
    outcome, reason = said(decision)
    agents = agent_access(app.access, approvers(app))
    uses = {name: may_use(name, inbound, agents) for name in app.agents}
    return AccessReport(
        outcome,
        reason,
        decision.verdicts,
        {name: use.why if use.may else f"not: {use.why}" for name, use in uses.items()},
    )


def said(decision: Decision) -> tuple[str, str]:
    """Give a decision in words, and its reason."""
    if isinstance(decision, OfferPairing):
        return "told a code", "pairing"
    return "admitted" if isinstance(decision, Admit) else "refused", decision.reason


def verdict_cells(verdict: AccessRuleResult) -> tuple[object, ...]:
    """Give the columns of one rule."""
    return (verdict.rule, verdict.outcome, verdict.why)


CLOCK = SystemClock()


class AccountRow(msgspec.Struct, frozen=True):
    """One account, as listed."""

    account: str
    name: str
    """What they call themselves."""

    state: str
    """`asks`, or `let in`."""

    code: str
    """Empty unless they ask."""

    at: float
    """Unix seconds: when they asked, or were let in."""

    until: float
    """Unix seconds: until when the code holds; 0: they are in for good."""

    by: str
    """Who let them in."""


def read(database: Database) -> PairingRows:
    """Read all rows, as they stand at one moment."""
    with database.inspect() as rows:
        asking, let_in = list(rows.entries(PAIRING)), list(rows.entries(GUEST))
    return pairing_rows.rows_of(asking, let_in)


def listed(rows: PairingRows, now: float) -> list[AccountRow]:
    """List who asks now, then who was let in."""
    asking = [each for each in rows.requests if is_open(each, now)]
    asking.sort(key=lambda each: each.asked_at)
    return [*map(asked, asking), *map(let_in, rows.guests)]


def asked(each: PairingRequest) -> AccountRow:
    """Give the row of somebody who asks."""
    code = shown(each.code)
    return AccountRow(
        each.account, each.name, "asks", code, each.asked_at, each.until, by=""
    )


def let_in(each: Guest) -> AccountRow:
    """Give the row of somebody who was let in."""
    return AccountRow(each.account, each.name, "let in", "", each.at, 0.0, each.by)


@click.group()
def command() -> None:
    """Let strangers in who were told a code, or end that again.

    May be used while `callboard serve` is running: it follows within seconds, and
    tells whom you let in.
    """


@command.command("list")
@database_options
@rows_options
def list_(choice: DatabaseChoice, *, as_json: bool) -> None:
    """List who asks to be let in, and who was.

    Anybody can call themselves anything: compare the code with the one they tell you.
    """
    rows = listed(read(choice.database), CLOCK.wall())
    headers = ("ACCOUNT", "NAME", "STATE", "CODE", "SINCE", "UNTIL", "BY")
    say_rows(
        rows,
        headers,
        cells,
        "Nobody asks to be let in, and nobody was.",
        as_json=as_json,
    )


@command.command()
@database_options
@click.argument("code")
def approve(choice: DatabaseChoice, code: str) -> int:
    """Let somebody in, by the code that they were told; they are told so."""
    database = choice.database
    rows = read(database)
    request = found(rows, code)
    if request is None:
        return unknown_code(code)
    if len(rows.guests) >= MOST_GUESTS:
        complain(f"{MOST_GUESTS} were let in; list people in the settings instead")
        return FAILED
    now, known = CLOCK.wall(), {each.account: each for each in rows.guests}
    was = known.get(request.account)
    guest = pairing_rows.as_let_in(request, COMMAND_LINE, now, was)
    commit = pairing_rows.as_approved(request, guest, record(), now)
    return write(database, commit, guest.account, "may write")


@command.command()
@database_options
@click.argument("code")
def deny(choice: DatabaseChoice, code: str) -> int:
    """Do not let somebody in; they are told no other code for a day."""
    database = choice.database
    request = found(read(database), code)
    if request is None:
        return unknown_code(code)
    now = CLOCK.wall()
    commit = pairing_rows.as_denied(denied(request, now), COMMAND_LINE, record(), now)
    return write(database, commit, request.account, "is not let in")


@command.command()
@database_options
@click.argument("account", type=with_slash)
def revoke(choice: DatabaseChoice, account: str) -> int:
    """Let an account, CONNECTOR/SENDER, write no more.

    What was taken in before is answered. Whom the settings list may go on.
    """
    database = choice.database
    if all(each.account != account for each in read(database).guests):
        complain(f"nobody let {account} in; see `callboard pairing list`")
        return FAILED
    commit = pairing_rows.as_revoked(account, COMMAND_LINE, record(), CLOCK.wall())
    return write(database, commit, account, "may write no more")


command.add_command(explain)


def found(rows: PairingRows, code: str) -> PairingRequest | None:
    """Find whose code somebody typed, if it holds."""
    wanted, now = plain(code), CLOCK.wall()
    holding = (each for each in rows.requests if is_open(each, now))
    return next((each for each in holding if each.code == wanted), None)


def unknown_code(code: str) -> int:
    """Say that nobody has a code; give the exit code."""
    complain(
        f"nobody waits under {code}: it may have been too long ago; see"
        " `callboard pairing list`"
    )
    return FAILED


def record() -> tuple[str, AuditRedaction]:
    """Give the id of a new audit record, and how it is redacted."""
    return IdSource(CLOCK).new(), AuditRedaction()


def write(database: Database, commit: Commit, account: str, done: str) -> int:
    """Store a change beside a running server; give the exit code."""
    if not is_stored(database, commit):
        return FAILED
    say(f"{account} {done}", account=account)
    return 0


def cells(row: AccountRow) -> tuple[object, ...]:
    """Give the columns of one account."""
    until = when(row.until) if row.until else ""
    return (row.account, row.name, row.state, row.code, when(row.at), until, row.by)
