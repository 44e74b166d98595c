"""The people met last, readable at once; and the messages to `people`.

The cache is shared by actors on the kernel thread: `people` alone writes it, everybody
else reads. Whom it does not know yet is a stranger with the settings' language.

Finds out who somebody is, without waiting long for it.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

import msgspec

from actors import names
from actors.messages.inbound import ALONE, Inbound
from actors.messages.keys import account_of
from actors.people.identity import Person
from actors.people.rows import SeenPerson
from actors.rules.text.limits import RecentMap
from runtime.actor.ref import UNANSWERED
from runtime.errors import KernelError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from actors.services import Services
    from runtime.actor.actor import Actor


# Chosen: one is half a kilobyte; five megabytes hold those who wrote last.
MOST_KNOWN = 10_000

# Chosen: one row is written in a minute for each person who writes in a group.
SEEN_EVERY = 60.0
"""Seconds to which it is known when somebody wrote in a group."""


class Acquaintances:
    """The people met last, by account; the one met longest ago makes room."""

    def __init__(self, most: int = MOST_KNOWN) -> None:
        self._known: RecentMap[str, Person] = RecentMap(most)
        self._seen: RecentMap[tuple[str, str], float] = RecentMap(most)

    @property
    def maxlen(self) -> int:
        """Say how many it holds at most."""
        return self._known.maxlen

    def __len__(self) -> int:
        """Say how many accounts are known."""
        return len(self._known)

    def find(self, account: str) -> Person | None:
        """Give the person behind an account; None: not known here, or not yet."""
        return self._known.get(account)

    def needs(self, account: str) -> bool:
        """Whether more is to be learnt of somebody: who it is, what they speak."""
        person = self._known.get(account)
        return person is None or not (person.is_welcomed and person.language)

    def is_seen(self, chat: str, account: str, now: float) -> bool:
        """Whether it is noted that somebody wrote in a chat within the last minute.

        Args:
            chat: `connector/chat`.
            now: seconds on the monotonic clock.
        """
        return now - self._seen.get((chat, account), -SEEN_EVERY) < SEEN_EVERY

    def note_seen(self, chat: str, account: str, now: float) -> None:
        """Note that somebody wrote in a chat now."""
        self._seen[chat, account] = now

    def keep(self, account: str, person: Person) -> None:
        """Know who is behind an account."""
        self._known[account] = person

    def forget(self, account: str) -> None:
        """Know an account no longer."""
        self._known.pop(account, None)

    def clear(self) -> None:
        """Know nobody: somebody else has changed what is stored."""
        self._known.clear()
        self._seen.clear()


class PersonWrote(msgspec.Struct, frozen=True):
    """To `people`: somebody wrote this."""

    account: str
    name: str
    text: str


class PersonSeen(msgspec.Struct, frozen=True):
    """To `people`: somebody wrote in a group."""

    chat: str
    """`connector/chat`."""

    account: str
    name: str


class ListPeople(msgspec.Struct, frozen=True):
    """To `people`, asked: who wrote in a group; answered by a `PeopleList`."""

    chat: str
    """`connector/chat`."""


class PeopleList(msgspec.Struct, frozen=True):
    """Who wrote in a group, by account; who wrote last comes first."""

    people: dict[str, SeenPerson]


class FindPerson(msgspec.Struct, frozen=True):
    """To `people`, asked: find an account's person; answered by a `Person`."""

    account: str


class ChangePerson(msgspec.Struct, frozen=True):
    """To `people`, asked or told: change a person's own choices.

    What is None stays as it is. The answer is the `Person` as it is stored.
    """

    account: str
    language: str | None = None
    """ISO 639-1, chosen by them; empty: to be recognised again."""

    model: str | None = None
    provider: str | None = None
    personality: str | None = None
    """How they want to be spoken to; cut if it is too long."""


class ShowCode(msgspec.Struct, frozen=True):
    """To `people`, asked: make a code for this account; answered by a `LinkCode`."""

    account: str


class LinkCode(msgspec.Struct, frozen=True):
    """The code to type on the other account."""

    code: str
    seconds: float
    """How long it holds."""


class TypeCode(msgspec.Struct, frozen=True):
    """To `people`, asked: this code was typed on this account; answered by `Linked`."""

    account: str
    code: str


class LinkAccounts(msgspec.Struct, frozen=True):
    """To `people`, asked: an owner links two accounts; answered by `Linked`."""

    account: str
    other: str
    by: str
    """The owner, as `connector/sender_id`."""


class UnlinkAccount(msgspec.Struct, frozen=True):
    """To `people`, asked: separate an account from its person; answered by `Linked`."""

    account: str
    by: str


class Linked(msgspec.Struct, frozen=True):
    """The result of linking or unlinking."""

    outcome: Literal["done", "unknown", "own", "too_many", "nothing"]
    """`nothing`: they were one already, or no two; or have too many accounts."""

    person: Person | None = None
    """With `done`: the person as it is now."""


class ForgetPeople(msgspec.Struct, frozen=True):
    """To `people`: another program has changed the store; read all rows again."""


LOG = EventLog("people")

# Chosen: mostly it is known already, else the disk is read once. When hundreds come at
# once whom nobody knows, the last of them waits for seconds; a stranger gets neither
# the model nor the language that they chose. A disk that needs longer stores nothing.
KNOWN_WITHIN = 15.0
"""Seconds until somebody is taken for a stranger."""


async def person_of(actor: Actor, services: Services, inbound: Inbound) -> Person:
    """Tell who wrote a message, or what it goes back to; a stranger if nobody says."""
    account = account_of(inbound)
    known = services.acquaintances.find(account)
    if known is not None:
        return known
    people = actor.find(names.PEOPLE)
    if people is None:
        return Person(account)
    try:
        found = await people.ask(FindPerson(account), timeout=KNOWN_WITHIN)
    except (*UNANSWERED, KernelError) as error:
        LOG.warning("somebody taken for a stranger", account=account, why=str(error))
        return Person(account)
    return found if isinstance(found, Person) else Person(account)


async def chosen_model(actor: Actor, services: Services, inbound: Inbound) -> str:
    """Name the model that somebody wants for their own messages; empty: any."""
    if inbound.chain.agents or inbound.occasion in ALONE:
        return ""  # what an agent hands on, or looks after, is its own affair
    model = (await person_of(actor, services, inbound)).model
    return model if model and may_choose(model, services) else ""


def may_choose(model: str, services: Services) -> bool:
    """Whether people may choose this model, by the settings."""
    return any(fnmatchcase(model, each) for each in services.commands.models)


def chat_of(inbound: Inbound) -> str:
    """Name the chat of a message, as `connector/chat`, whatever its thread."""
    return f"{inbound.address.connector}/{inbound.address.chat}"


def introduce(actor: Actor, services: Services, inbound: Inbound) -> None:
    """Have `people` learn who wrote, if there is anything left to learn."""
    # Why not those without a name of their own: each has the message's id, and would
    # be somebody new each time.
    if inbound.chain.agents or inbound.sender_id in ("", inbound.id):
        return
    account = account_of(inbound)
    if actor.find(names.PEOPLE) is None:
        return
    if not inbound.is_direct:
        chat, now = chat_of(inbound), services.clock.monotonic()
        if not services.acquaintances.is_seen(chat, account, now):
            actor.tell(names.PEOPLE, PersonSeen(chat, account, inbound.sender_name))
    if services.acquaintances.needs(account):
        actor.tell(
            names.PEOPLE, PersonWrote(account, inbound.sender_name, inbound.text)
        )
