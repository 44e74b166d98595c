"""Pairing requests, and who may be told a code now; pure.

A stranger in a direct chat is told a short code; whoever runs this lets them in by it.
What a flood of strangers costs is bounded: by the codes that hold at once, by the
codes told in a minute, and by the time until one stranger is told theirs again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Literal

import msgspec

from actors.config.access import AccessConfig
from actors.messages.inbound import Address
from actors.rules.text.codes import plain
from actors.rules.text.limits import NoticeLimiter

LONGEST_NAME = 64
"""Characters of what somebody calls themselves that are kept."""

DENIED_FOR = 86_400.0
"""Seconds for which somebody whose request was denied is told no code."""

MOST_DENIED = 200
"""Denied requests of one connector that are remembered; the oldest make room."""

MINUTE = 60.0

DAY = 86_400.0

Quiet = Literal["told_lately", "denied", "too_many_codes", "too_fast"]
"""Why a stranger is told nothing now."""


class PairingRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stranger's request to be let in, without anything they wrote."""

    account: str
    """`connector/sender_id`."""

    name: str
    """What they call themselves, cut short: anybody can call themselves anything."""

    address: Address
    """The direct chat, where they are told."""

    code: str
    asked_at: float
    """Unix seconds, as all times here."""

    told_at: float
    """When they were told the code last."""

    until: float
    """When the request is forgotten: the code holds until then, or the denial."""

    language: str = ""
    """The language they are told in; empty: the company's."""

    is_denied: bool = False
    version: int = 0
    """Of its row; 0: it has none yet. The row itself does not say it."""


class Guest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody whom an owner has let in."""

    account: str
    name: str
    address: Address
    by: str
    """Which owner: an account, or `the command line`."""

    at: float
    language: str = ""
    """As with a request."""

    is_told: bool = False
    """Whether they are told of it, or have been."""

    version: int = 0
    """As with a request."""


def called(name: str) -> str:
    """Write what somebody calls themselves in one line of printable characters."""
    kept = "".join(c if c.isprintable() else " " for c in name)
    return " ".join(kept.split())[:LONGEST_NAME]


class PairingRequests:
    """All requests at one connector."""

    def __init__(
        self, config: AccessConfig, stored: Iterable[PairingRequest] = ()
    ) -> None:
        self.config = config
        self._all = {each.account: each for each in stored}
        told = sorted(each.told_at for each in self._all.values())
        self._told = deque(told, maxlen=config.codes_per_minute)
        """When codes were told last."""

    def all(self) -> tuple[PairingRequest, ...]:
        """Give all that are kept, denied and expired ones too."""
        return tuple(self._all.values())

    def get(self, account: str) -> PairingRequest | None:
        """Give somebody's request."""
        return self._all.get(account)

    def open(self, now: float) -> tuple[PairingRequest, ...]:
        """Give those whose codes hold."""
        return tuple(x for x in self._all.values() if is_open(x, now))

    def expired(self, now: float) -> tuple[PairingRequest, ...]:
        """Give those that are to be forgotten, and denied ones there is no room for."""
        over = [each for each in self._all.values() if not holds(each, now)]
        denied = [x for x in self._all.values() if x.is_denied and holds(x, now)]
        denied.sort(key=lambda each: each.until)
        return (*over, *denied[: max(0, len(denied) - MOST_DENIED)])

    def by_code(self, typed: str, now: float) -> PairingRequest | None:
        """Find whose code somebody typed; None: nobody's, or it holds no longer."""
        code = plain(typed)
        return next((x for x in self.open(now) if x.code == code), None)

    def weigh(self, knock: PairingRequest, now: float) -> PairingRequest | Quiet:
        """Decide whether a stranger is told a code now.

        Args:
            now: Unix seconds.

        Returns:
            The request to store and tell, with the code they have already if they
            have one; or why they are told nothing.
        """
        known = self._all.get(knock.account)
        if known is not None and holds(known, now):
            if known.is_denied:
                return "denied"
            if 0 <= now - known.told_at < self.config.code_again_after:
                return "told_lately"
            until = now + self.config.code_for
            again = msgspec.structs.replace(
                known, told_at=now, until=until, language=knock.language
            )
            return "too_fast" if self._is_too_fast(now) else again
        if len(self.open(now)) >= self.config.max_codes:
            return "too_many_codes"
        return "too_fast" if self._is_too_fast(now) else knock

    def put(self, request: PairingRequest, now: float) -> None:
        """Keep a request that was stored."""
        if request.told_at == now:
            self._told.append(now)
        self._all[request.account] = request

    def drop(self, account: str) -> None:
        """Forget somebody's request."""
        self._all.pop(account, None)

    def replace(self, stored: Iterable[PairingRequest]) -> None:
        """Know these and no others: somebody else wrote them."""
        self._all = {each.account: each for each in stored}

    def _is_too_fast(self, now: float) -> bool:
        told = self._told
        return len(told) == told.maxlen and 0 <= now - told[0] < MINUTE


class StrangerHints:
    """Limits what strangers are told who may not ask for a code.

    Each person is told once a day in each chat; all together as often as codes are.
    """

    __slots__ = ("_notices", "_told_at")

    def __init__(self) -> None:
        self._notices = NoticeLimiter(DAY)
        self._told_at: deque[float] = deque()

    def may_tell(self, account: str, address: Address, most: int, now: float) -> bool:
        """Tell whether somebody is told now, which counts as told.

        Args:
            now: monotonic seconds.
        """
        told = self._told_at
        while told and now - told[0] >= MINUTE:
            told.popleft()
        whose = (account, address.connector, address.chat)
        if len(told) >= most or not self._notices.may_tell(whose, now):
            return False
        told.append(now)
        return True


def is_open(request: PairingRequest, now: float) -> bool:
    """Whether somebody may be let in by this request's code."""
    return not request.is_denied and holds(request, now)


def holds(request: PairingRequest, now: float) -> bool:
    """Whether a request is still to be remembered.

    One from the future was made before the clock was put right: nobody waits for it.
    """
    return request.asked_at - MINUTE <= now < request.until


def denied(request: PairingRequest, now: float) -> PairingRequest:
    """Give a request as it is once it is denied: it gets no other code for a day."""
    return msgspec.structs.replace(request, is_denied=True, until=now + DENIED_FOR)
