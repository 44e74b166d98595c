"""`callboard people`: who is known, and whose accounts are one person's."""

from __future__ import annotations

import click
import msgspec

from actors.people import identity, rows as people_rows
from actors.people.identity import PeopleChange, Person
from actors.people.rows import ALIAS, PERSON, PersonRow
from actors.rules.text.secrets import AuditRedaction
from connectors.admin.display import when
from connectors.commands.common.database import (
    DatabaseChoice,
    database_options,
    is_stored,
)
from connectors.commands.common.output import (
    FAILED,
    complain,
    rows_options,
    say,
    say_rows,
    with_slash,
)
from runtime.clock import SystemClock
from runtime.ids import IdSource
from runtime.store.database import Database

BY = "the command line"


class ListedPerson(msgspec.Struct, frozen=True):
    """One person, as listed."""

    id: str
    name: str
    language: str
    model: str
    aliases: tuple[str, ...]
    proposals: tuple[str, ...]
    """Accounts that may be theirs, by their names."""

    changed_at: float
    """Unix seconds."""


class PeopleRows:
    """All rows of people, as they stood at one moment."""

    def __init__(self, database: Database) -> None:
        with database.inspect() as rows:
            self.people = {each.id: each for each in rows.entries(PERSON)}
            self.whose = {each.id: each.body.decode() for each in rows.entries(ALIAS)}

    def of(self, account: str) -> PersonRow:
        """Give the person behind an account."""
        return self.own(self.whose.get(account, account))

    def own(self, person_id: str) -> PersonRow:
        """Give a person's own row."""
        row = self.people.get(person_id)
        if row is None:
            return PersonRow(Person(person_id))
        return PersonRow(people_rows.decoded(row), row.version)

    def listed(self) -> list[ListedPerson]:
        """List everybody who is nobody's alias."""
        found: list[ListedPerson] = []
        for row in self.people.values():
            if row.id in self.whose:
                continue
            person = people_rows.decoded(row)
            found.append(
                ListedPerson(
                    person.id,
                    person.name,
                    person.language,
                    person.model,
                    person.aliases,
                    person.proposals,
                    row.at,
                )
            )
        return found


@click.group()
def command() -> None:
    """Show who is known, and say whose accounts are one person's."""


@command.command("list")
@database_options
@click.option("--proposed", is_flag=True, help="Only those who may have more accounts.")
@rows_options
def list_(choice: DatabaseChoice, *, proposed: bool, as_json: bool) -> None:
    """List people with their accounts.

    "MAYBE" are accounts on other platforms under a like name. Nobody is linked by that
    alone: they say so themselves (/link), or you do (callboard people link).
    """
    rows = PeopleRows(choice.database).listed()
    if proposed:
        rows = [each for each in rows if each.proposals]
    headers = ("PERSON", "NAME", "LANGUAGE", "MODEL", "ALSO", "MAYBE", "CHANGED")
    say_rows(rows, headers, cells, "Nobody is known yet.", as_json=as_json)


@command.command()
@database_options
@click.argument("account", type=with_slash)
@click.argument("other", type=with_slash)
def link(choice: DatabaseChoice, account: str, other: str) -> int:
    """Say that two accounts, each CONNECTOR/SENDER, are one person's.

    They are known by the first one's id from then on. `unlink` takes it back.
    """
    refuse_unknown_shape(account, other)
    rows = PeopleRows(choice.database)
    first, second = rows.of(account), rows.of(other)
    change = identity.link(first.person, second.person)
    if change is None:
        complain(
            f"nothing changed: {account} and {other} are one person already, or"
            f" would have more than {identity.MOST_ALIASES + 1} accounts"
        )
        return FAILED
    told = (other, "linked", f"with {first.person.id}, by {BY}")
    return write(choice.database, change, (first, second), told)


@command.command()
@database_options
@click.argument("account", type=with_slash)
def unlink(choice: DatabaseChoice, account: str) -> int:
    """Make an account, CONNECTOR/SENDER, somebody's of its own again."""
    refuse_unknown_shape(account)
    rows = PeopleRows(choice.database)
    found = rows.of(account)
    aliases = found.person.aliases
    heir = rows.own(aliases[0]) if aliases else None
    change = identity.unlink(found.person, account, heir.person if heir else None)
    if change is None:
        complain(f"nothing changed: {account} is linked with nobody")
        return FAILED
    told = (account, "unlinked", f"from {found.person.id}, by {BY}")
    return write(choice.database, change, (found, heir) if heir else (found,), told)


def write(
    database: Database,
    change: PeopleChange,
    rows: tuple[PersonRow, ...],
    told: tuple[str, str, str],
) -> int:
    """Store a change beside a running server; give the exit code."""
    clock = SystemClock()
    record = people_rows.as_told(IdSource(clock).new(), *told, AuditRedaction())
    versions = {each.person.id: each.version for each in rows}
    commit = people_rows.as_commit(change, versions, clock.wall(), (record,))
    if not is_stored(database, commit):
        return FAILED
    for person in change.people:
        if change.whose.get(person.id):
            continue  # it belongs to another person now, who is shown with it
        aliases = ", ".join(person.aliases) or "no other account"
        say(f"{person.id}: {aliases}", id=person.id, aliases=person.aliases)
    return 0


def refuse_unknown_shape(*accounts: str) -> None:
    """Check that accounts look like accounts.

    Raises:
        click.BadParameter: one does not.
    """
    for each in accounts:
        connector, slash, sender = each.partition("/")
        if not (connector and slash and sender):
            raise click.BadParameter(
                f"{each!r} is no account; write CONNECTOR/SENDER, as `callboard people"
                " list` shows them"
            )


def cells(row: ListedPerson) -> tuple[object, ...]:
    """Give the columns of one person."""
    return (
        row.id,
        row.name,
        row.language,
        row.model,
        ", ".join(row.aliases),
        ", ".join(row.proposals),
        when(row.changed_at),
    )
