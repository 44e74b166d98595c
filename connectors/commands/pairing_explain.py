"""`callboard pairing explain`: whether somebody may write, to whom, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from actors.messages import Address, Inbound
from actors.pairing_rows import GUEST
from actors.rules.admission import Admit, Pair, Verdict, admit, policy
from actors.rules.agent_access import agent_access, may_use
from connectors.access_checks import access_of, approvers
from connectors.commands.database import (
    database_options,
    find_database,
    json_option,
    settings_beside,
)
from connectors.commands.printing import complain, say, say_json, table
from connectors.model_checks import unknown
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from pathlib import Path

    from actors.rules.admission import Decision, Policy
    from connectors.config import AppConfig

FAILED = 1


class Explained(msgspec.Struct, frozen=True):
    """Whether somebody may write, and to whom."""

    outcome: str
    """`admitted`, `refused`, or `told a code`."""

    reason: str
    verdicts: tuple[Verdict, ...]
    agents: dict[str, str]
    """By name: why they may use each; those they may not begin with `not: `."""


@click.command()
@database_options
@click.argument("account")
@click.option("--group", metavar="CHAT", default="", help="Written in this group.")
@click.option("--role", "roles", multiple=True, help="What they are there; again.")
@json_option
def explain(
    config: Path | None,
    db: Path | None,
    account: str,
    group: str,
    roles: tuple[str, ...],
    *,
    as_json: bool,
) -> int:
    """Say whether an account, CONNECTOR/SENDER, may write, to which agents, and why."""
    settings = settings_beside(config, db)
    connector, slash, sender = account.partition("/")
    if settings is None or not (connector and slash and sender):
        raise click.UsageError("write CONNECTOR/SENDER, and name the settings (-c)")
    app = settings.value
    for complaint in unknown((), "connector", connector, app.connectors):
        complain(f"{complaint.text}; {complaint.hint}")
        return FAILED
    inbound = as_inbound(connector, sender, group, roles)
    is_guest = is_let_in(find_database(config, db), account)
    told = explained(app, inbound, is_guest=is_guest)
    if as_json:
        say_json(told)
        return 0
    say(f"{account}: {told.outcome} ({told.reason})")
    for line in table(("RULE", "SAYS", "WHY"), map(cells, told.verdicts)):
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


def is_let_in(path: Path, account: str) -> bool:
    """Whether an owner has let an account in; without a database nobody has."""
    if not path.exists():
        return False
    with survey(path) as rows:
        return any(each.id == account for each in rows.entries(GUEST))


def policy_of(app: AppConfig, connector: str) -> Policy | None:
    """Give what decides about one connector; None: its edge knows its people."""
    access = access_of(app.connectors[connector])
    return None if access is None else policy(access, app.owners)


def explained(app: AppConfig, inbound: Inbound, *, is_guest: bool) -> Explained:
    """Decide as the running server would."""
    rules = policy_of(app, inbound.address.connector)
    decision = admit(inbound, rules, is_paired=is_guest)
    outcome, reason = said(decision)
    agents = agent_access(app.access, approvers(app))
    uses = {name: may_use(name, inbound, agents) for name in app.agents}
    return Explained(
        outcome,
        reason,
        decision.verdicts,
        {name: use.why if use.may else f"not: {use.why}" for name, use in uses.items()},
    )


def said(decision: Decision) -> tuple[str, str]:
    """Give a decision in words, and its reason."""
    if isinstance(decision, Pair):
        return "told a code", "pairing"
    return "admitted" if isinstance(decision, Admit) else "refused", decision.reason


def cells(verdict: Verdict) -> tuple[object, ...]:
    """Give what the table says of one rule."""
    return (verdict.rule, verdict.outcome, verdict.why)
