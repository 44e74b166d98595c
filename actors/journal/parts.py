"""Keeps a commit in one part: what belongs to other parts is handed over.

Pure. A part is what one node owns at a time (`actors.messages.keys`). The rest reaches
the owners of the other parts as `Commit.handovers` says; while one process has all
parts, it is stored at once and in the same transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from actors.messages.keys import fact_partition
from runtime.store.facts import FactChange, PutVector, SaveFact
from runtime.store.rows import Accept, Commit, Enqueue, Entry, Handover, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Row = TypeVar("Row", Accept, Enqueue, Entry, Record)


def in_one_part(commit: Commit, part: int, cause: str) -> Commit:
    """Hand over the rows of a commit that belong to other parts.

    Args:
        commit: what it changes by id or appends must be of `part`.
        part: that of what caused it.
        cause: names what caused it, and no other commit.
    """
    facts = tuple(by_part(commit.facts)) if commit.facts else ()
    rows: tuple[Accept | Enqueue | Entry | Record, ...]
    rows = (*commit.accepts, *commit.deliveries, *commit.records, *commit.entries)
    others = [each.part for each in rows if each.part != part]
    others += [home for home, _ in facts if home != part]
    if not others:
        return commit
    own, *rest = [
        Commit(
            at=commit.at,
            accepts=of_part(commit.accepts, each),
            deliveries=of_part(commit.deliveries, each),
            records=of_part(commit.records, each),
            entries=of_part(commit.entries, each),
            facts=tuple([change for home, change in facts if home == each]),
        )
        for each in (part, *dict.fromkeys(others))
    ]
    handed = [
        Handover(part=home, source=part, key=cause, rows=given)
        for home, given in zip(dict.fromkeys(others), rest, strict=True)
    ]
    return msgspec.structs.replace(
        commit,
        accepts=own.accepts,
        deliveries=own.deliveries,
        records=own.records,
        entries=own.entries,
        facts=own.facts,
        handovers=(*commit.handovers, *handed),
    )


def of_part(rows: tuple[Row, ...], part: int) -> tuple[Row, ...]:
    """Give the rows of one part."""
    return tuple([each for each in rows if each.part == part])


def by_part(changes: Iterable[FactChange]) -> Iterator[tuple[int, FactChange]]:
    """Give changes of facts with their parts; one of several parts becomes several."""
    for change in changes:
        if isinstance(change, SaveFact):
            yield change.part, change
        elif isinstance(change, PutVector):
            yield fact_partition(change.agent, change.scope), change
        else:
            homes: dict[int, list[str]] = {}
            for scope in change.scopes:
                home = fact_partition(change.agent, scope)
                homes.setdefault(home, []).append(scope)
            for home, scopes in homes.items():
                one = msgspec.structs.replace(change, scopes=tuple(scopes))
                yield home, one


def facts_commit(at: float, changes: tuple[FactChange, ...], cause: str) -> Commit:
    """Make the commit of changes of facts that nothing else goes with.

    Args:
        at: Unix seconds.
        changes: at least one.
        cause: names what caused them, and no other commit.
    """
    part = next(iter(by_part(changes)))[0]
    return in_one_part(Commit(at=at, facts=changes), part, cause)


def entries_of(commit: Commit) -> tuple[Entry, ...]:
    """Give the entries of a commit, and those that it hands over."""
    handed = [row for each in commit.handovers for row in each.rows.entries]
    return (*commit.entries, *handed)
