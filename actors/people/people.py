"""The actor of people: the only writer of their rows.

Codes by which a person shows that two accounts are theirs; pure.

A code is shown on one account, in private, and typed on the other. It holds for minutes
and counts once; what codes are, and how often wrong ones may be tried, is
`actors/rules/text/codes.py`. Kept in memory: after a restart a new one is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar

import msgspec

from actors.people import identity, rows as people_rows
from actors.people.identity import (
    LONGEST_NAME,
    LONGEST_PERSONALITY,
    PeopleChange,
    Person,
)
from actors.people.lookup import (
    ChangePerson,
    FindPerson,
    ForgetPeople,
    LinkAccounts,
    LinkCode,
    Linked,
    ListPeople,
    PeopleList,
    PersonSeen,
    PersonWrote,
    ShowCode,
    TypeCode,
    UnlinkAccount,
)
from actors.rules.text import languages
from actors.rules.text.codes import CODE_BYTES, TryLimiter, code_of, plain, shown
from actors.rules.text.limits import RecentMap
from actors.rules.text.secrets import redacted
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.errors import SequenceConflictError, StoreError
from runtime.store.rows import Commit
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from actors.people.rows import PersonRow
    from actors.services import Services


HOLDS_FOR = 600.0
"""Seconds that a code holds."""

# Chosen: each is a hundred bytes; who floods pushes out the oldest, which only have
# to be asked for again.
MOST_CODES = 1_000

Refusal = Literal["unknown", "own", "too_many"]


class IssuedCode(msgspec.Struct, frozen=True):
    """A link code that is still valid."""

    account: str
    until: float


class RedeemedCode(msgspec.Struct, frozen=True):
    """A link code that was typed correctly."""

    account: str
    """Where it was shown."""


class LinkCodes:
    """All valid link codes, and who has typed wrong ones."""

    def __init__(self) -> None:
        self._codes: RecentMap[str, IssuedCode] = RecentMap(MOST_CODES)
        self._tries = TryLimiter()

    def issue(self, account: str, random: bytes, now: float) -> str:
        """Make a code for an account; an earlier one of it no longer holds.

        Args:
            random: `CODE_BYTES` bytes that nobody can guess.
            now: seconds on a clock that does not go backwards.
        """
        for code, issued in tuple(self._codes.items()):
            if issued.account == account or issued.until <= now:
                del self._codes[code]
        code = code_of(random)
        self._codes[code] = IssuedCode(account, now + HOLDS_FOR)
        return shown(code)

    def redeem(self, typed: str, account: str, now: float) -> RedeemedCode | Refusal:
        """Take a code that was typed on an account.

        Returns:
            The account it was shown on, or why it does not count.
        """
        if self._tries.are_used_up(account, now):
            return "too_many"
        code = plain(typed)
        issued = self._codes.get(code)
        if issued is None or issued.until <= now:
            self._tries.note_wrong(account, now)
            return "unknown"
        if issued.account == account:
            return "own"
        del self._codes[code]
        self._tries.forget(account)
        return RedeemedCode(issued.account)


LOG = EventLog("people")

T = TypeVar("T")

# Chosen: whose language is not clear by then speaks none that is known.
MOST_MESSAGES = 20
"""Messages of one person that are looked at for their language."""

MOST_HEARD = 10_000
"""People whose language is being found out at the same time."""

# Chosen: a new person is compared with those whose names begin alike; a hundred
# comparisons take some five milliseconds.
MOST_COMPARED = 100

# Chosen: the only other writer is an owner at the command line.
TRIES = 3


class LanguageEvidence(msgspec.Struct, frozen=True):
    """What was seen so far of the languages somebody writes in."""

    points: dict[str, int] = {}
    messages: int = 0


class People(Actor):
    """Knows people by their accounts, and stores what changes.

    Takes: `PersonWrote` and `PersonSeen`, from connectors; `FindPerson`,
        `ListPeople`, `ChangePerson`, `ShowCode`, `TypeCode`, `LinkAccounts`,
        `UnlinkAccount` (asked); `ForgetPeople` from the store's keeper.
    Sends: nothing but answers.
    Keeps: the cache that all share, codes that hold, and for a while what was heard
        of those whose language is not known.
    Fails: never by a disk that fails: whoever wrote is a stranger meanwhile, and
        whoever asked is given the error.
    Ends: with the system.
    """

    # Chosen: one message for each that comes in of a person not known yet; of a
    # flood, the newest are as good as the oldest.
    mailbox: ClassVar[MailboxConfig] = MailboxConfig(
        capacity=20_000, overflow="drop_oldest"
    )

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._store = services.store
        self._known = services.acquaintances
        self._codes = LinkCodes()
        self._heard: RecentMap[str, LanguageEvidence] = RecentMap(MOST_HEARD)

    def on_receive(self, message: object) -> object:
        """Learn of somebody, or tell who it is."""
        match message:
            case PersonWrote():
                return self._met(message)
            case PersonSeen():
                return self._saw(message)
            case FindPerson(account=account):
                return self._find(account)
            case ChangePerson():
                return self._change(message)
            case ForgetPeople():
                self._known.clear()
                return None
            case _:
                return self._on_accounts(message)

    def _on_accounts(self, message: object) -> object:
        match message:
            case ListPeople(chat=chat):
                return self._list(chat)
            case ShowCode(account=account):
                return self._show_code(account)
            case TypeCode():
                return self._typed(message)
            case LinkAccounts(account=account, other=other, by=by):
                return self._link(account, other, by)
            case UnlinkAccount(account=account, by=by):
                return self._unlink(account, by)
            case _:
                return super().on_receive(message)

    # --- who somebody is -----------------------------------------------------------

    def _met(self, met: PersonWrote) -> Awaitable[None] | None:
        """Learn who wrote, what they are called, which language they speak."""
        known = self._known.find(met.account)
        language = "" if known and known.language else self._recognise(met)
        if known is not None and self._seen(known, met, language, ()) == known:
            return None  # as of most whose language is none that is spoken here
        return self._note(met, language)

    async def _note(self, met: PersonWrote, language: str) -> None:
        """Store what was learnt of somebody."""
        try:
            read = await people_rows.read(self._store, met.account)
            proposals = () if read.version else await self._propose(met)
            seen = await self._update(
                met.account,
                lambda person: self._seen(person, met, language, proposals),
                read,
            )
        except StoreError as error:
            LOG.warning("not noted who wrote", account=met.account, why=str(error))
            return
        if not read.version:
            # They are new for this once; what is stored is that they were here.
            stranger = msgspec.structs.replace(seen, is_welcomed=False)
            self._known.keep(met.account, stranger)

    def _seen(
        self,
        person: Person,
        met: PersonWrote,
        language: str,
        proposals: tuple[str, ...],
    ) -> Person:
        is_own = met.account == person.id and bool(met.name)
        return msgspec.structs.replace(
            person,
            name=met.name[:LONGEST_NAME] if is_own else person.name,
            language=person.language or language,
            is_welcomed=True,
            proposals=person.proposals or proposals,
        )

    def _recognise(self, met: PersonWrote) -> str:
        """Add up what speaks for each language; give the one that enough does."""
        before = self._heard.get(met.account, LanguageEvidence())
        if before.messages >= MOST_MESSAGES:
            return ""
        counted = languages.added(before.points, languages.points(met.text))
        if found := languages.decide(counted):
            self._heard.pop(met.account, None)
            return found
        self._heard[met.account] = LanguageEvidence(counted, before.messages + 1)
        return ""

    async def _propose(self, met: PersonWrote) -> tuple[str, ...]:
        """Name accounts that may be the same person's, by their names."""
        if not self._services.people.propose_links:
            return ()
        stranger = identity.Person(met.account, name=met.name[:LONGEST_NAME])
        others = await people_rows.alike(self._store, stranger.name, MOST_COMPARED)
        return identity.propose(stranger, others)

    async def _saw(self, seen: PersonSeen) -> None:
        """Note who wrote in a group, and when."""
        chat, account, clock = seen.chat, seen.account, self._services.clock
        if self._known.is_seen(chat, account, clock.monotonic()):
            return
        name = " ".join(seen.name.split())[:LONGEST_NAME]
        now = clock.wall()
        try:
            known = await people_rows.read_chat(self._store, chat)
            known.people[account] = people_rows.SeenPerson(name or account, now)
            entry = people_rows.as_chat_entry(chat, known)
            await self._store.commit(Commit(at=now, entries=(entry,)))
        except StoreError as error:
            LOG.warning("not noted who wrote where", account=account, why=str(error))
            return
        self._known.note_seen(chat, account, clock.monotonic())

    async def _list(self, chat: str) -> PeopleList:
        return PeopleList((await people_rows.read_chat(self._store, chat)).people)

    async def _find(self, account: str) -> Person:
        known = self._known.find(account)
        if known is None:
            known = (await people_rows.read(self._store, account)).person
            self._known.keep(account, known)
        return known

    async def _change(self, asked: ChangePerson) -> Person:
        changes: dict[str, str | bool] = {}
        for field in ("language", "model", "provider", "personality"):
            given: str | None = getattr(asked, field)
            if given is not None:
                changes[field] = given[:LONGEST_PERSONALITY]
        if asked.personality:
            kept = redacted(self._services.redact(asked.personality))
            changes["personality"] = kept[:LONGEST_PERSONALITY]
        if asked.language is not None:
            changes["is_language_chosen"] = bool(asked.language)
            self._heard.pop(asked.account, None)

        def change(person: Person) -> Person:
            return msgspec.structs.replace(person, **changes)

        return await self._update(asked.account, change)

    async def _update(
        self,
        account: str,
        change: Callable[[Person], Person],
        known: people_rows.PersonRow | None = None,
    ) -> Person:
        """Change a person's row, unless that changes nothing.

        Args:
            change: makes the new person of the old one.
            known: the row as it was just read; None: it is read.
        """
        at_hand = [known] if known is not None else []

        async def make() -> tuple[Person, Commit | None]:
            # Another try reads it anew: somebody has changed it.
            read = (
                at_hand.pop()
                if at_hand
                else await people_rows.read(self._store, account)
            )
            changed = change(read.person)
            if read.version and changed == read.person:
                return changed, None
            now = self._services.clock.wall()
            entry = people_rows.as_entry(changed, read.version)
            return changed, Commit(at=now, entries=(entry,))

        person = await self._write(make)
        self._learn(account, person)
        return person

    def _learn(self, account: str, person: Person) -> None:
        """Know a person anew, by all accounts they were known by."""
        self._known.keep(account, person)
        for each in person.accounts:
            if self._known.find(each) is not None:
                self._known.keep(each, person)

    async def _write(self, make: Callable[[], Awaitable[tuple[T, Commit | None]]]) -> T:
        """Commit what `make` builds from the rows; build it again if they changed."""
        for left in range(TRIES - 1, -1, -1):
            made, commit = await make()
            try:
                if commit is not None:
                    await self._store.commit(commit)
            except SequenceConflictError:
                if not left:
                    raise
            else:
                return made
        raise AssertionError("unreachable: the last try returns or raises")

    # --- whose an account is -------------------------------------------------------

    def _show_code(self, account: str) -> LinkCode:
        random = self._services.random_bytes(CODE_BYTES)
        now = self._services.clock.monotonic()
        return LinkCode(self._codes.issue(account, random, now), HOLDS_FOR)

    async def _typed(self, typed: TypeCode) -> Linked:
        now = self._services.clock.monotonic()
        found = self._codes.redeem(typed.code, typed.account, now)
        if not isinstance(found, RedeemedCode):
            return Linked(found)
        return await self._link(found.account, typed.account, typed.account)

    async def _link(self, account: str, other: str, by: str) -> Linked:
        """Make two accounts one person's, known by whom the first one is."""

        async def make() -> tuple[Person | None, Commit | None]:
            first = await people_rows.read(self._store, account)
            second = await people_rows.read(self._store, other)
            change = identity.link(first.person, second.person)
            if change is None:
                return None, None
            why = f"with {first.person.id}, by {by}"
            return change.people[0], self._as_commit(
                change, (first, second), (other, "linked", why)
            )

        return self._linked(await self._write(make))

    async def _unlink(self, account: str, by: str) -> Linked:
        """Make an account somebody's of its own again."""

        async def make() -> tuple[Person | None, Commit | None]:
            read = await people_rows.read(self._store, account)
            person = read.person
            heir = None
            if person.aliases:
                heir = await people_rows.own(self._store, person.aliases[0])
            change = identity.unlink(person, account, heir.person if heir else None)
            if change is None:
                return None, None
            rows = (read, heir) if heir else (read,)
            why = f"from {person.id}, by {by}"
            return change.people[0], self._as_commit(
                change, rows, (account, "unlinked", why)
            )

        return self._linked(await self._write(make))

    def _as_commit(
        self,
        change: PeopleChange,
        rows: tuple[PersonRow, ...],
        told: tuple[str, str, str],
    ) -> Commit:
        services = self._services
        record = people_rows.as_told(services.ids.new(), *told, services.keep)
        versions = {each.person.id: each.version for each in rows}
        return people_rows.as_commit(change, versions, services.clock.wall(), (record,))

    def _linked(self, person: Person | None) -> Linked:
        if person is None:
            return Linked("nothing")
        # Others may have been known by what they were a moment ago.
        self._known.clear()
        return Linked("done", person)
