"""People: who asks to be let in, who is known, and what is remembered of each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

import msgspec

from actors import names
from actors.commands.memory import SHOWN, worded
from actors.journal.parts import in_one_part
from actors.journal.records import AuditRecord, Deed, as_commit
from actors.memory.forgetting import marked
from actors.messages.keys import fact_partition
from actors.people.guests import DecideRequest, RequestDecided, RevokeGuest
from actors.people.identity import Person
from actors.people.pairing_rows import GUEST, PAIRING, rows_of
from actors.people.rows import ALIAS, PERSON, decoded
from actors.rules.text.codes import shown
from connectors.admin.audit import matching
from connectors.web.page.views.base import (
    NOBODY_THERE,
    NOT_KNOWN,
    Look,
    Refusal,
    View,
    ViewRequest,
    ViewValues,
    asking,
    read_view,
)
from connectors.web.page.words import beginning
from runtime.actor.ref import UNANSWERED
from runtime.errors import KernelError
from runtime.store.database import Inspection
from runtime.store.facts import MAX_SCOPES, FactListing, ForgetFacts
from runtime.telemetry.logs import EventLog

LOG = EventLog("page")

MOST_LISTED = 200

MOST_FACTS = 100
"""Facts of one agent about one person that are shown."""

MOST_AGENTS = 50
"""Agents whose memory is looked into for one person."""

MOST_LOOKED_AT = 5_000
"""Records that are read for that."""

MOST_SAID = 10
"""Last messages of a person that are shown."""


async def load(asked: ViewRequest) -> ViewValues:
    """List people, or show one with what is remembered of them."""
    wanted = asked.query.get("id", "")
    if not wanted:
        return await read_view(asked, read_list)
    accounts: list[str] = []
    values = await read_view(asked, partial(read_one, accounts))
    scopes = tuple(f"person:{each}" for each in accounts[:MAX_SCOPES])
    return {**values, "remembered": await facts_of(asked, scopes)}


# --- the list ----------------------------------------


def read_list(look: Look) -> ViewValues:
    """Read who asks, who was let in, and who is known."""
    find = look.query.get("find", "").strip().casefold()
    with look.database.inspect() as rows:
        asks, let_in = list(rows.entries(PAIRING)), list(rows.entries(GUEST))
        found = list(islice(known(rows, find), MOST_LISTED + 1))
    guests = rows_of(asks, let_in).guests
    return {
        "one": None,
        "find": look.query.get("find", ""),
        "requests": [
            {
                "account": each.account,
                "name": each.name,
                "code": shown(each.code),
                "asked_at": each.asked_at,
                "until": each.until,
            }
            for each in asking(asks, let_in, look.now)
        ],
        "guests": [
            {"account": x.account, "name": x.name, "by": x.by, "at": x.at}
            for x in guests
        ],
        "people": found[:MOST_LISTED],
        "has_more": len(found) > MOST_LISTED,
        "owners": list(look.config.owners),
    }


def known(rows: Inspection, find: str) -> Iterator[dict[str, object]]:
    """Give the people who are known and whose names or accounts have these words."""
    aliases = {each.id for each in rows.entries(ALIAS)}
    for row in rows.entries(PERSON):
        if row.id in aliases:
            continue
        person = decoded(row)
        if find in f"{person.name} {' '.join(person.accounts)}".casefold():
            yield {
                "id": person.id,
                "name": person.name or person.id.partition("/")[2],
                "accounts": list(person.accounts),
                "language": person.language,
                "model": person.model,
                "at": row.at,
            }


# --- one person ----------------------------------------


def read_one(accounts: list[str], look: Look) -> ViewValues:
    """Read one person, and what they wrote last.

    Args:
        accounts: theirs are added to it.
    """
    wanted = look.query["id"]
    with look.database.inspect() as rows:
        own = next((x for x in rows.entries(ALIAS) if x.id == wanted), None)
        whose = wanted if own is None else own.body.decode()
        row = next((x for x in rows.entries(PERSON) if x.id == whose), None)
        person = Person(wanted) if row is None else decoded(row)
        said = [x for each in person.accounts for x in said_by(look, rows, each)]
    accounts += person.accounts
    said.sort(key=lambda each: -each[0])
    return {
        "one": {
            "id": person.id,
            "name": person.name or person.id.partition("/")[2],
            "language": person.language,
            "model": person.model,
            "personality": person.personality,
        },
        "accounts": list(person.accounts),
        "said": [{"at": at, "id": it, "it": body} for at, it, body in said[:MOST_SAID]],
    }


def said_by(
    look: Look, rows: Inspection, account: str
) -> list[tuple[float, str, AuditRecord]]:
    """Give the last messages of an account: when, the id, and what is on record."""
    connector, _, sender = account.partition("/")
    past = matching(rows, "", sender, 0.0, look.complain)
    mine = (x for x in islice(past, MOST_LOOKED_AT) if x[1].channel == connector)
    return [
        (row.at, row.id.partition("#")[0], body)
        for row, body in islice(mine, MOST_SAID)
    ]


async def facts_of(
    asked: ViewRequest, scopes: tuple[str, ...]
) -> list[dict[str, object]]:
    """Read what each agent remembers of a person; agents with nothing are left out."""
    services = asked.inside.services
    agents = tuple(asked.inside.config().agents)[:MOST_AGENTS]
    found: list[dict[str, object]] = []
    for agent in agents:
        listing = FactListing(
            agent=agent,
            scopes=scopes,
            kinds=SHOWN,
            now=services.clock.wall(),
            limit=MOST_FACTS,
        )
        try:
            facts = await services.store.facts.listed(listing)
        except KernelError as error:
            raise Refusal(services.redact(str(error))) from error
        if facts:
            rows = [
                {
                    "id": each.id,
                    "scope": each.scope,
                    "text": beginning(services.redact(worded(each)), 2_000),
                    "category": each.category,
                    "at": each.created_at,
                }
                for each in facts
            ]
            found.append({"agent": agent, "facts": rows})
    return found


async def forget(asked: ViewRequest) -> str:
    """Have an agent forget one fact about a person, or all it knows of them."""
    form, services = asked.form, asked.inside.services
    agent, scope = form.get("agent", ""), form.get("scope", "")
    if not agent or not scope.startswith("person:"):
        raise Refusal(
            asked.say("the form does not say what to forget; load the page again")
        )
    fact = form.get("id", "")
    change = ForgetFacts(agent=agent, scopes=(scope,), ids=(fact,) if fact else ())
    deed = Deed("forget", "forgotten", f"{agent} {scope} {fact}".strip(), asked.person)
    cause = services.ids.new()
    marks = marked(agent, (scope,), cause)
    commit = as_commit(deed, services)
    commit = msgspec.structs.replace(
        commit, facts=(change,), entries=(*commit.entries, *marks)
    )
    commit = in_one_part(commit, fact_partition(agent, scope), cause)
    try:
        await services.store.commit(commit)
    except KernelError as error:
        raise Refusal(services.redact(str(error))) from error
    LOG.info("changed by hand", what="forget", target=agent, by=asked.person)
    return asked.say("forgotten")


# --- strangers ----------------------------------------


async def approve(asked: ViewRequest) -> str:
    """Let somebody in by their code."""
    return await decide(asked, is_approved=True)


async def deny(asked: ViewRequest) -> str:
    """Do not let somebody in."""
    return await decide(asked, is_approved=False)


async def decide(asked: ViewRequest, *, is_approved: bool) -> str:
    """Decide about somebody who asks to be let in, as `/pair` in a chat does."""
    done = await ask_pairing(
        asked, DecideRequest(asked.form.get("code", ""), asked.person, is_approved)
    )
    who = f"{done.name or done.account} ({done.account})"
    if is_approved:
        return asked.say("{who} may write", who=who)
    return asked.say("{who} is not let in", who=who)


async def revoke(asked: ViewRequest) -> str:
    """Let somebody write no more."""
    done = await ask_pairing(
        asked, RevokeGuest(asked.form.get("account", ""), asked.person)
    )
    return asked.say("{who} may write no more", who=done.name or done.account)


OUTCOMES = {
    "unknown": "nobody waits under this code any more; they may ask again",
    "too_many": "too many wrong codes; wait some minutes",
    "full": "as many as may be were let in; list people in the settings instead",
}


async def ask_pairing(asked: ViewRequest, message: object) -> RequestDecided:
    """Ask the actor that lets people in.

    Raises:
        Refusal: it did nothing, or does not answer.
    """
    pairing = asked.inside.system.find(names.PAIRING)
    if pairing is None:
        raise Refusal(asked.say(NOBODY_THERE))
    try:
        done: RequestDecided = await pairing.ask(message)
    except UNANSWERED as error:
        raise Refusal(asked.say(NOT_KNOWN, why=error)) from error
    if done.outcome != "done":
        raise Refusal(asked.say(OUTCOMES[done.outcome]))
    return done


ACTIONS = {"approve": approve, "deny": deny, "revoke": revoke, "forget": forget}
VIEW = View("people", "People", load, every=5.0, actions=ACTIONS)
