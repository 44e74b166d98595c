"""Chooses the next backend for a model, and cools backends down after failures.

Pure. An account is a key or a server at a provider; the same model may be had on
several. A *backend* is one model on one account: what cools down after a failure,
because providers limit each model of an account by itself.

Two kinds of cool-down. What the provider asks for, or a used-up quota, is kept to
whatever happens. What is only guessed counts while there is anything else to ask;
with nothing else left, waiting longer than seconds would help nobody.

How long one question goes on when the models it is put to fail.

Pure. Within one round each backend is asked once at most. When none is left, the
next round begins after a wait, if that is short; a longer one is for the durable
retry of the message. `actors/turn/calling.py` carries it out.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from actors.errors import ModelFault


# Chosen: a provider that asks for more than an hour is asked again after one; a
# mistaken header must not take an account away for a day.
LONGEST_HINT = 3600.0

# Source: OpenClaw's model-failover.md: 1, 5, 25, 60 minutes when it happens again.
LADDER = (60.0, 300.0, 1500.0, 3600.0)

# Chosen: an hour may be enough when a limit is by the hour, and a day is a new day.
QUOTA_LADDER = (3600.0, 18_000.0, 86_400.0)

# Chosen: a gateway that refuses a good key once is asked again soon; a wrong key costs
# a request in an hour.
AUTH_LADDER = (15.0, 60.0, 300.0, 900.0, 3600.0)
"""Seconds for which an account is left alone that did not take its key, each time it
happens again."""

# Chosen: seconds after a failed connection; the next may be well.
SHORT = 5.0

# Chosen: with nothing else to ask, a backend is asked again after half a second, then
# after twice as long each time, as long as its failures are no minute apart.
QUICK = 0.5
LONGEST_QUICK = 20.0
FORGET_QUICK = 60.0

# Chosen: an hour after its cool-down ended, an old failure says nothing any more.
FORGET_RUNG = 3600.0

# Chosen: a call counts half as much ten minutes later, so that an account that comes
# back from a cool-down is not given every call until it has caught up.
HALF_LIFE = 600.0

NEVER = math.inf


class ModelOffer(msgspec.Struct, frozen=True, kw_only=True):
    """One model of the settings, with its accounts and fallbacks."""

    name: str
    """Which of `[models.<name>]`."""

    model: str
    """The provider's name of it."""

    accounts: tuple[str, ...]
    """Where it can be had; at least one."""

    fallbacks: tuple[str, ...] = ()
    """Models to ask when no account has this one, in order."""

    larger: str = ""
    """The model to ask when the transcript is too long for this one; empty: none."""

    takes_tools: bool = True
    has_own_tools: bool = False
    """Whether it works with tools that it brings along: it is then not passed over for
    a model that takes ours."""

    takes_images: bool = True
    extra_body: bytes = b""
    """See `ModelRequest`."""

    window: int = 0
    """Tokens that it reads at most; 0: the settings do not say."""


class Backend(msgspec.Struct, frozen=True, order=True):
    """One model on one account."""

    account: str
    model: str
    """Which of `[models.<name>]`."""


class BackendQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What a backend must be able to do for one call."""

    model: str
    needs_tools: bool = False
    needs_images: bool = False
    tried: frozenset[Backend] = frozenset()
    """Not these: they were asked already."""


class NoBackend(msgspec.Struct, frozen=True):
    """No backend may be asked now."""

    at: float
    """The earliest time at which one may be, on the caller's clock; `NEVER` if none
    will before the settings are mended."""


class CoolDown(msgspec.Struct):
    """The recent failures of a backend, and until when it is left alone."""

    failed_at: float = -math.inf
    asked_until: float = -math.inf
    """The provider asked to be left alone until then."""

    guessed_until: float = -math.inf
    rung: int = -1
    """Where on the ladder the guess stands."""

    quota_until: float = -math.inf
    quota_rung: int = -1
    quick: int = 0
    """Failures that followed each other within a minute."""

    @property
    def required_until(self) -> float:
        """Until when it is left alone whatever happens."""
        return max(self.asked_until, self.quota_until)

    @property
    def free_at(self) -> float:
        """When it is one like any other again."""
        return max(self.required_until, self.guessed_until)

    @property
    def last_resort_at(self) -> float:
        """When it may be asked if there is nothing else."""
        wait = min(QUICK * 2.0 ** min(max(self.quick - 1, 0), 30), LONGEST_QUICK)
        guessed = min(self.guessed_until, self.failed_at + wait)
        return max(self.required_until, guessed)


class ShutOut(msgspec.Struct):
    """An account that did not take its key when it was asked last."""

    rung: int
    """Where on the ladder it stands."""

    until: float
    """It is left alone until then."""


class BackendUse(msgspec.Struct):
    """How many calls a backend has now and has had."""

    in_flight: int = 0
    count: float = 0.0
    """Calls, the older ones counting less."""

    at: float = 0.0
    """The time that `count` is of."""

    def of(self, now: float) -> float:
        """Give what the calls so far count for now."""
        return float(self.count * 0.5 ** (max(0.0, now - self.at) / HALF_LIFE))


class Pool:
    """All backends: how much each is used, and which are cooling down.

    Args:
        offers: the models, by name; each names accounts, and models that exist.
        preferences: by account, lower first; 0 for one that is not named.
    """

    def __init__(
        self, offers: Mapping[str, ModelOffer], preferences: Mapping[str, int]
    ) -> None:
        self._offers = offers
        self._preferences = preferences
        self._cooling: dict[Backend, CoolDown] = {}
        self._uses: dict[Backend, BackendUse] = {}
        self._out: dict[str, ShutOut] = {}

    def reoffer(
        self,
        offers: Mapping[str, ModelOffer],
        preferences: Mapping[str, int],
        renewed: frozenset[str],
    ) -> None:
        """Go on with other settings; what is known of who stays is kept.

        Args:
            offers: as for a new pool.
            preferences: as for a new pool.
            renewed: accounts of which nothing is known any more, nor of their calls.
        """
        self._offers = offers
        self._preferences = preferences
        staying = {
            Backend(account, offer.name)
            for offer in offers.values()
            for account in offer.accounts
            if account not in renewed
        }
        self._cooling = {b: known for b, known in self._cooling.items() if b in staying}
        self._uses = {b: use for b, use in self._uses.items() if b in staying}
        accounts = {backend.account for backend in staying}
        self._out = {name: out for name, out in self._out.items() if name in accounts}

    def has(self, model: str) -> bool:
        """Tell whether there is a model of this name."""
        return model in self._offers

    @property
    def out(self) -> frozenset[str]:
        """Accounts that did not take their keys when they were asked last."""
        return frozenset(self._out)

    def line(self, wanted: BackendQuery) -> list[str]:
        """Give the models that may answer, the best first.

        The wanted one, its fallbacks, theirs; those that cannot do what is needed
        come last.
        """
        found: dict[str, None] = {wanted.model: None}
        queue = [wanted.model]
        while queue:
            for name in self._offers[queue.pop(0)].fallbacks:
                if name not in found:
                    found[name] = None
                    queue.append(name)
        return sorted(found, key=lambda name: self._lacks(name, wanted))

    def choose(self, wanted: BackendQuery, now: float) -> Backend | NoBackend:
        """Choose whom to ask: by model, then preference, then the least used.

        Args:
            wanted: what is looked for.
            now: seconds on the caller's monotonic clock.
        """
        everyone = list(self._candidates(wanted, now))
        untried = [each for each in everyone if each not in wanted.tried]
        for backend in untried:
            if self.free_at(backend) <= now:
                return backend
        ready = [each for each in untried if self.last_resort_at(each) <= now]
        if ready:
            return min(ready, key=self.free_at)
        # Why not the others: a question does not wait for a key to be mended.
        let_in = [each for each in everyone if self._out_until(each) <= now]
        return NoBackend(min(map(self.last_resort_at, let_in), default=NEVER))

    def begin(self, backend: Backend, now: float) -> None:
        """Count a call that begins."""
        use = self._uses.setdefault(backend, BackendUse())
        use.count, use.at = use.of(now) + 1.0, now
        use.in_flight += 1

    def end(self, backend: Backend) -> None:
        """Count a call that is over, however it ended."""
        use = self._uses.get(backend)
        if use is not None and use.in_flight > 0:
            use.in_flight -= 1

    def succeeded(self, backend: Backend, now: float) -> None:
        """Forget its failures.

        While the provider asks for rest, or the quota is used up, that is kept: the
        call had begun before.
        """
        self._out.pop(backend.account, None)
        known = self._cooling.pop(backend, None)
        if known is not None and known.required_until > now:
            self._cooling[backend] = CoolDown(
                asked_until=known.asked_until,
                quota_until=known.quota_until,
                quota_rung=known.quota_rung,
            )

    def failed(
        self, backend: Backend, kind: ModelFault, retry_after: float | None, now: float
    ) -> None:
        """Let a backend cool down after a failure.

        Args:
            backend: who failed.
            kind: of what kind; what is the request's own fault changes nothing, nor
                does a senseless answer (`protocol`) without a `retry_after`.
            retry_after: seconds the provider asked for; None, or not a number, if it
                did not.
            now: seconds on the caller's monotonic clock.
        """
        if kind in {"context", "vision", "content", "bad_request"}:
            return
        if kind == "protocol" and hint(retry_after) is None:
            return
        if kind == "auth":
            self._shut_out(backend.account, now)
            return
        known = self._cooling.setdefault(backend, CoolDown())
        is_apart = now - known.failed_at >= FORGET_QUICK
        known.quick = 1 if is_apart else known.quick + 1
        self._cool(known, kind, hint(retry_after), now)
        known.failed_at = now

    def free_at(self, backend: Backend) -> float:
        """When a backend's cool-down ends; in the past if there is none."""
        known = self._cooling.get(backend)
        free_at = known.free_at if known is not None else -math.inf
        return max(free_at, self._out_until(backend))

    def last_resort_at(self, backend: Backend) -> float:
        """When a backend may be asked if there is nothing else to ask."""
        known = self._cooling.get(backend)
        may_at = known.last_resort_at if known is not None else -math.inf
        return max(may_at, self._out_until(backend))

    def _out_until(self, backend: Backend) -> float:
        out = self._out.get(backend.account)
        return out.until if out is not None else -math.inf

    def _shut_out(self, account: str, now: float) -> None:
        """Leave an account alone; calls that fail together are one step."""
        known = self._out.get(account)
        if known is not None and now < known.until:
            return
        rung = 0 if known is None else min(known.rung + 1, len(AUTH_LADDER) - 1)
        self._out[account] = ShutOut(rung, now + AUTH_LADDER[rung])

    def use(self, backend: Backend, now: float) -> tuple[int, float]:
        """Give its calls in flight, and what all its calls count for."""
        known = self._uses.get(backend)
        return (known.in_flight, known.of(now)) if known is not None else (0, 0.0)

    def cooling(self, now: float) -> list[Backend]:
        """Name the backends that are not free."""
        names = (
            Backend(account, offer.name)
            for offer in self._offers.values()
            for account in offer.accounts
        )
        return [each for each in names if self.free_at(each) > now]

    def _candidates(self, wanted: BackendQuery, now: float) -> Iterator[Backend]:
        for name in self.line(wanted):
            backends = [Backend(each, name) for each in self._offers[name].accounts]
            yield from self._in_order(backends, now)

    def _in_order(self, backends: Iterable[Backend], now: float) -> list[Backend]:
        def rank(backend: Backend) -> tuple[int, int, float]:
            preference = self._preferences.get(backend.account, 0)
            return (preference, *self.use(backend, now))

        return sorted(backends, key=rank)

    def _lacks(self, name: str, wanted: BackendQuery) -> int:
        offer = self._offers[name]
        can_act = offer.takes_tools or offer.has_own_tools
        no_tools = wanted.needs_tools and not can_act
        no_images = wanted.needs_images and not offer.takes_images
        return 2 * no_tools + no_images

    def _cool(
        self, known: CoolDown, kind: ModelFault, asked: float | None, now: float
    ) -> None:
        if asked is not None:
            known.asked_until = max(known.asked_until, now + asked)
        if kind == "quota":
            if now >= known.quota_until:
                known.quota_rung = min(known.quota_rung + 1, len(QUOTA_LADDER) - 1)
            wait = QUOTA_LADDER[known.quota_rung]
            known.quota_until = max(known.quota_until, now + wait)
        elif kind not in {"rate", "overload"}:
            known.guessed_until = max(known.guessed_until, now + SHORT)
        elif asked is None:
            self._climb(known, now)

    def _climb(self, known: CoolDown, now: float) -> None:
        """Go up the ladder; calls that fail together are one step."""
        if known.rung < 0 or now >= known.guessed_until + FORGET_RUNG:
            known.rung = 0
        elif now >= known.guessed_until:
            known.rung = min(known.rung + 1, len(LADDER) - 1)
        known.guessed_until = max(known.guessed_until, now + LADDER[known.rung])


def hint(retry_after: float | None) -> float | None:
    """Give the seconds that a provider asked for, as far as they are believed."""
    if retry_after is None or math.isnan(retry_after):
        return None
    return min(max(retry_after, 0.0), LONGEST_HINT)


# Chosen: three rounds, as a busy provider mostly has room again within seconds.
ROUNDS = 3

# Chosen: with more accounts and fallbacks than that, the rest is left for the message's
# next turn: nobody wants to wait for thirty providers to fail one after the other.
MOST_CALLS = 12

# Chosen: seconds in all; who waits for the end of other calls, which may cost less
# than is held back for them, waits as long as most calls take.
MOST_HELD = 60.0

LONGEST_WAIT = 10.0
"""Seconds in all; a longer wait ends the turn. In a chat the message then waits, and
its writer is told how long; over HTTP the client is told at once when to ask again.
"""

NEUTRAL: dict[ModelFault, str] = {
    "rate": "overloaded",
    "overload": "overloaded",
    "quota": "not available",
    "auth": "not available",
    "network": "it cannot be reached",
    "timeout": "it took too long",
    "protocol": "its answer was cut off or made no sense",
}
"""What people read of a failure that is no fault of theirs: never whose limit it was
."""

Step = Literal["rotate", "larger", "refuse"]


class TriedBackends:
    """The backends already tried for one call."""

    def __init__(self, model: str) -> None:
        self.model = model
        """Which of `[models.<name>]` is to be asked next."""

        self._tried: set[Backend] = set()
        self._rounds = 1
        self._calls = 0
        self._last: ModelFault = "overload"
        self._held = 0.0
        self._waited = 0.0

    @property
    def tried(self) -> frozenset[Backend]:
        """Who was asked in this round."""
        return frozenset(self._tried)

    @property
    def excuse(self) -> str:
        """What to tell the person."""
        return NEUTRAL.get(self._last, "not available")

    def failed(self, backend: Backend, kind: ModelFault, larger: str) -> Step:
        """Say how to go on after a failure.

        Args:
            backend: who failed.
            kind: how.
            larger: the model for transcripts too long for this one; empty: none.
        """
        self._calls += 1
        self._tried.add(backend)
        self._last = kind
        if kind == "context" and larger and self._calls < MOST_CALLS:
            self.model = larger
            return "larger"
        if kind in {"context", "vision", "content", "bad_request"}:
            return "refuse"
        return "rotate"

    @property
    def is_exhausted(self) -> bool:
        """Whether no further call is to be made."""
        return self._calls >= MOST_CALLS

    def wait_held(self, seconds: float) -> float | None:
        """Say how long to wait for the end of other calls; None: give up."""
        self._held += max(seconds, MOST_HELD / 100)
        return seconds if self._held <= MOST_HELD else None

    def wait(self, seconds: float) -> float | None:
        """Say how long to wait for the next round; None: give up.

        Args:
            seconds: until a backend may be asked; may be negative, or infinite.
        """
        self._waited += max(seconds, 0.0)
        is_too_long = self._waited > LONGEST_WAIT
        if self._rounds >= ROUNDS or self.is_exhausted or is_too_long:
            return None
        self._rounds += 1
        self._tried.clear()
        return max(seconds, 0.0)
