"""The actor of pairing: strangers ask to be let in, owners decide.

The rules are in `pairing_rules.py`. Requests and guests are rows, so that a code holds
over a restart, and `callboard pairing` can decide beside a running server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from actors import names
from actors.config.access import AccessConfig
from actors.journal import commits
from actors.journal.parts import in_one_part
from actors.messages.deliveries import Delivery
from actors.messages.keys import chat_partition
from actors.people import pairing_rows, pairing_rules as pairing
from actors.people.guests import (
    DecideRequest,
    GuestBook,
    ListGuests,
    ReadGuests,
    RequestDecided,
    RevokeGuest,
    StrangerWrote,
)
from actors.people.identity import connector_of
from actors.people.pairing_rows import MOST_GUESTS
from actors.people.pairing_rules import (
    Guest,
    PairingRequest,
    PairingRequests,
    StrangerHints,
)
from actors.protocol import Deliver
from actors.rules.text.codes import CODE_BYTES, TryLimiter, code_of, shown
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.errors import SequenceConflictError, StoreError
from runtime.store.rows import Commit, Committed, Enqueue, Entry
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from actors.messages.inbound import Address
    from actors.rules.text.secrets import AuditRedaction
    from actors.services import Services

LOG = EventLog("pairing")

TO_LET_IN = (
    "if you know them, ask them for it: callboard pairing approve CODE; else do nothing"
)

CODE = (
    "I do not know you yet. Ask whoever runs this to let you in by this code: {code}"
    " (it holds for {minutes} minutes). What you write until then is not kept; please"
    " write it again afterwards."
)
HINT = (
    "I answer only people who have been let in. Ask the operators to let you in as"
    " {account}."
)
HINT_IN_GROUP = (
    "I answer only people who have been let in. Ask the operators to let you in."
)
HINT_OF_PAIRING = (
    "I answer only people who have been let in. Write to me in a direct chat: there you"
    " get a code by which the operators can let you in."
)
LET_IN = (
    "You have been let in: from now on you can write to me. What you wrote before was"
    " not kept; please write it again."
)

READ_AGAIN = 1.0
"""Seconds until rows that could not be read are read again."""

SWEEP_EVERY = 60.0
"""Seconds between looks for requests that are over."""

TRIES = 2
"""The only other writer is an owner at the command line."""


class ForgetOldRequests(msgspec.Struct, frozen=True):
    """A note to itself: forget requests that have ended."""


class Pairing(Actor):
    """Tells strangers their codes, and stores whom owners let in.

    Takes: `StrangerWrote`, from connectors; `DecideRequest`, `RevokeGuest`,
        `ListGuests` (asked); `ReadGuests` from the store's keeper.
    Sends: `Deliver` to connectors.
    Keeps: the list of guests that all share, and requests, as the store has them; who
        has typed wrong codes.
    Fails: never by a disk that fails: strangers are told nothing meanwhile, and an
        owner is given the error.
    Ends: with the system.
    """

    # Chosen: of a flood of strangers the newest are as good as the oldest; whom
    # nothing is told costs microseconds, so an owner's word waits for milliseconds.
    mailbox: ClassVar[MailboxConfig] = MailboxConfig(
        capacity=5_000, overflow="drop_oldest"
    )

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._store = services.store
        self._requests: dict[str, PairingRequests] = {}
        """By connector; as many as there ever were."""

        self._hints: dict[str, StrangerHints] = {}
        """By connector; likewise."""

        self._guests: dict[str, Guest] = {}
        self._tries = TryLimiter()

    async def on_start(self) -> None:
        """Read who was let in: until then connectors let nobody in."""
        self.every(SWEEP_EVERY, ForgetOldRequests())
        await self._read()

    def on_receive(self, message: object) -> object:
        """Do one thing."""
        match message:
            case StrangerWrote():
                is_knock = message.answer == "code"
                return self._knock(message) if is_knock else self._hint(message)
            case ReadGuests():
                return self._read()
            case ForgetOldRequests():
                return self._sweep()
            case _:
                return self._on_owner(message)

    def _on_owner(self, message: object) -> object:
        match message:
            case DecideRequest():
                return self._decide(message)
            case RevokeGuest():
                return self._revoke(message)
            case ListGuests():
                return self._book()
            case _:
                return super().on_receive(message)

    # --- what is stored ----------------------------------------------------------

    async def _read(self) -> None:
        try:
            rows = await pairing_rows.read(self._store)
            await self._take(rows)
        except StoreError as error:
            LOG.warning("guests not read yet", why=str(error))
            self.after(READ_AGAIN, ReadGuests())

    async def _take(self, rows: pairing_rows.PairingRows) -> None:
        """Know all rows anew; tell those whom the command line has let in."""
        self._guests = {each.account: each for each in rows.guests}
        self._services.guests.replace(self._guests)
        stored: dict[str, list[PairingRequest]] = {name: [] for name in self._requests}
        for request in rows.requests:
            stored.setdefault(connector_of(request.account), []).append(request)
        for name, requests in stored.items():
            self._of(name, requests).replace(requests)
        for guest in rows.guests:
            if not guest.is_told and self._runs(guest.account):
                told = msgspec.structs.replace(guest, is_told=True)
                entries = (pairing_rows.as_guest(told),)
                commit = Commit(at=self._now(), entries=entries)
                text = self._say(LET_IN, guest.language)
                if await self._store_and_say(commit, guest.address, text):
                    self._learn(told)

    def _of(
        self, connector: str, stored: list[PairingRequest] | None = None
    ) -> PairingRequests:
        found = self._requests.get(connector)
        config = self._config(connector)
        if found is not None and found.config != config:  # the settings have changed
            stored, found = [*found.all()], None
        if found is None:
            found = self._requests[connector] = PairingRequests(config, stored or ())
        return found

    async def _store_and_say(
        self,
        commit: Commit,
        to: Address,
        text: str,
        wrote: StrangerWrote | None = None,
    ) -> bool:
        """Store something with what somebody is told of it; False: the rows changed."""
        new_id = self._services.ids.new()
        delivery = Delivery(
            id=f"{new_id}:pairing",
            correlation_id=new_id,
            address=to,
            agent="",
            text=text,
            kind="notice",
            is_root=False,
            speaker="" if wrote is None else wrote.speaker,
            reply_to="" if wrote is None else wrote.reply_to,
        )
        part = chat_partition(to.connector, to.chat)
        row = commits.as_enqueue(delivery, part)
        commit = msgspec.structs.replace(commit, deliveries=(row,))
        done = await self._commit(commit, new_id)
        if done is None:
            return False
        if part not in done.waiting:
            self.tell(names.connector(to.connector), Deliver(delivery))
        return True

    async def _commit(self, commit: Commit, cause: str = "") -> Committed | None:
        """Store something; None: the rows changed meanwhile."""
        rows: tuple[Entry | Enqueue, ...] = (*commit.entries, *commit.deliveries)
        if rows:
            cause = cause or self._services.ids.new()
            commit = in_one_part(commit, rows[0].part, cause)
        try:
            return await self._store.commit(commit)
        except SequenceConflictError:
            return None

    async def _sweep(self) -> None:
        now = self._now()
        for requests in self._requests.values():
            over = requests.expired(now)
            entries = tuple(map(pairing_rows.as_forgotten, over))
            try:
                commit = Commit(at=now, entries=entries)
                if over and await self._commit(commit) is None:
                    await self._read()
                    return
            except StoreError as error:
                LOG.warning("old requests not removed", why=str(error))
                return
            for request in over:
                requests.drop(request.account)

    # --- strangers ---------------------------------------------------------------

    async def _knock(self, knock: StrangerWrote) -> None:
        """Tell a stranger their code, unless that is too much."""
        now, account = self._now(), knock.account
        if account in self._guests:
            return  # let in a moment ago
        requests = self._of(knock.address.connector)
        # Why one look at the clock for all: what was told is counted by its time.
        weighed = requests.weigh(self._as_request(knock, requests, now), now)
        if not isinstance(weighed, PairingRequest):
            self._services.metrics.pairings.add(1, weighed)
            return
        minutes = max(1, round((weighed.until - now) / 60))
        text = self._say(CODE, weighed.language)
        text = text.format(code=shown(weighed.code), minutes=minutes)
        commit = Commit(at=now, entries=(pairing_rows.as_request(weighed),))
        try:
            if not await self._store_and_say(commit, weighed.address, text, knock):
                await self._read()
                return
        except StoreError as error:
            LOG.warning("a stranger was not told a code", why=str(error))
            return
        requests.put(written(weighed), now)
        self._services.metrics.pairings.add(1, "told")
        LOG.info("a stranger was told a code", account=account, what_to_do=TO_LET_IN)

    async def _hint(self, wrote: StrangerWrote) -> None:
        """Tell somebody who may not write how to be let in, unless told lately."""
        connector, config = (
            wrote.address.connector,
            self._config(wrote.address.connector),
        )
        hints = self._hints.setdefault(connector, StrangerHints())
        tick, most = self._services.clock.monotonic(), config.codes_per_minute
        if not hints.may_tell(wrote.account, wrote.address, most, tick):
            return
        has_member_ids = self._services.accounts[connector].abilities.has_member_ids
        if wrote.answer == "direct_hint" or has_member_ids:
            text = self._say(HINT, wrote.language).format(account=wrote.account)
        else:
            is_offered = config.people == "pairing"
            hint = HINT_OF_PAIRING if is_offered else HINT_IN_GROUP
            text = self._say(hint, wrote.language)
        try:
            await self._store_and_say(
                Commit(at=self._now()), wrote.address, text, wrote
            )
        except StoreError as error:
            LOG.warning("a stranger was not told whom to ask", why=str(error))
            return
        self._services.metrics.pairings.add(1, "hinted")

    def _config(self, connector: str) -> AccessConfig:
        policy = self._services.accounts[connector].policy
        return AccessConfig() if policy is None else policy.config

    def _as_request(
        self, knock: StrangerWrote, requests: PairingRequests, now: float
    ) -> PairingRequest:
        services, config = self._services, self._config(knock.address.connector)
        known = requests.get(knock.account)
        return PairingRequest(
            account=knock.account,
            name=pairing.called(services.redact(knock.name)),
            address=knock.address,
            # One in fifty billion is somebody else's: whoever asks first counts.
            code=code_of(services.random_bytes(CODE_BYTES)),
            asked_at=now,
            told_at=now,
            until=now + config.code_for,
            language=knock.language,
            version=0 if known is None else known.version,
        )

    # --- owners ------------------------------------------------------------------

    def _book(self) -> GuestBook:
        now = self._now()
        found = [each for one in self._requests.values() for each in one.open(now)]
        found.sort(key=lambda each: each.asked_at)
        return GuestBook(tuple(found), tuple(self._guests.values()), now)

    async def _decide(self, asked: DecideRequest) -> RequestDecided:
        """Let somebody in, or not, by their code."""
        tick = self._services.clock.monotonic()
        if self._tries.are_used_up(asked.by, tick):
            return self._decided(RequestDecided("too_many"))
        for _ in range(TRIES):
            request = self._find(asked.code)
            if request is None:
                break
            if asked.is_approved and len(self._guests) >= MOST_GUESTS:
                return self._decided(RequestDecided("full"))
            if await self._write(request, asked):
                self._tries.forget(asked.by)
                done = "let_in" if asked.is_approved else "not_let_in"
                return self._decided(
                    RequestDecided("done", request.account, request.name), done
                )
            await self._read()
        self._tries.note_wrong(asked.by, tick)
        return self._decided(RequestDecided("unknown"))

    async def _write(self, request: PairingRequest, asked: DecideRequest) -> bool:
        now, told = self._now(), self._record()
        requests = self._of(connector_of(request.account))
        if not asked.is_approved:
            denied = pairing.denied(request, now)
            commit = pairing_rows.as_denied(denied, asked.by, told, now)
            is_stored = await self._commit(commit) is not None
            if is_stored:
                requests.put(written(denied), now)
            return is_stored
        known = self._guests.get(request.account)
        guest = pairing_rows.as_let_in(request, asked.by, now, known)
        runs = self._runs(guest.account)
        guest = msgspec.structs.replace(guest, is_told=runs)
        commit = pairing_rows.as_approved(request, guest, told, now)
        if runs:
            text = self._say(LET_IN, guest.language)
            is_stored = await self._store_and_say(commit, guest.address, text)
        else:
            is_stored = await self._commit(commit) is not None
        if is_stored:
            requests.drop(request.account)
            self._learn(guest)
        return is_stored

    async def _revoke(self, asked: RevokeGuest) -> RequestDecided:
        """Let somebody write no more."""
        guest = self._guests.get(asked.account)
        if guest is None:
            return self._decided(RequestDecided("unknown"))
        now, told = self._now(), self._record()
        await self._commit(pairing_rows.as_revoked(asked.account, asked.by, told, now))
        del self._guests[asked.account]
        self._services.guests.replace(self._guests)
        return self._decided(
            RequestDecided("done", guest.account, guest.name), "revoked"
        )

    def _find(self, code: str) -> PairingRequest | None:
        now = self._now()
        found = (each.by_code(code, now) for each in self._requests.values())
        return next((each for each in found if each is not None), None)

    def _learn(self, guest: Guest) -> None:
        guest = msgspec.structs.replace(guest, version=guest.version + 1)
        self._guests[guest.account] = guest
        self._services.guests.replace(self._guests)

    def _decided(self, decided: RequestDecided, outcome: str = "") -> RequestDecided:
        self._services.metrics.pairings.add(1, outcome or f"code_{decided.outcome}")
        return decided

    def _record(self) -> tuple[str, AuditRedaction]:
        return self._services.ids.new(), self._services.keep

    def _runs(self, account: str) -> bool:
        """Whether this process runs the connector of an account, and can tell them."""
        return connector_of(account) in self._services.accounts

    def _say(self, text: str, language: str) -> str:
        return self._services.voices.speak(language)(text)

    def _now(self) -> float:
        return self._services.clock.wall()


def written(request: PairingRequest) -> PairingRequest:
    """Give a request as its row is, once it has been written."""
    return msgspec.structs.replace(request, version=request.version + 1)
