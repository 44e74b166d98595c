"""Chooses the next backend for a model, and cools backends down after failures.

Pure. An account is a key or a server at a provider; the same model may be had on
several. A *backend* is one model on one account: what cools down after a failure,
because providers limit each model of an account by itself.

Each backend, and each account, has one circuit, which alone says when it may be asked.
What the provider asks for, or a used-up quota, is kept to whatever happens. What is
only guessed counts while there is anything else to ask; with nothing else left, waiting
longer than seconds would help nobody. When the time is over, one call is made as a
probe before all others are let in. A question that finds no backend is told when the
next one may be asked, and its message waits for that.

How long one question goes on when the models it is put to fail.

Pure. Within one round each backend is asked once at most. When none is left, the
next round begins after a wait, if that is short; a longer one is for the durable
retry of the message. `actors/turn/round.py` carries it out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import msgspec

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

# Chosen: most failures are told within that, and nobody waits for it longer.
PROBE = 2.0
"""Seconds for which nobody asks beside a probe; if it goes on, it gets an answer."""

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

    kind: ModelFault | None = None
    """Kind of the failure because of which one of them is left alone; None: none is."""

    why: str = ""
    """What that one's provider said, as in `CallEnded`."""


class LearntFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A failure that another node has seen; its times are seconds from now on."""

    required: float
    """For which nobody may ask."""

    guessed: float
    """For which it is asked only if there is nothing else to ask."""

    kind: ModelFault | None
    why: str


class Circuit(msgspec.Struct):
    """When a backend, or an account, may be asked: it is closed, open or half-open.

    Closed: it answered last. A failure opens it until a time: before that it is asked
    only if there is nothing else to ask, and not at all where the provider said so.
    After that it is half-open: the next call is a probe, and nobody asks beside it
    until it has failed, or gone on for `PROBE` seconds. A call that ends well closes
    the circuit.
    """

    until: float = -math.inf
    """Open until then, in the caller's monotonic seconds; closed: minus infinity."""

    required_until: float = -math.inf
    """Asked by nobody until then, as the provider said, or a quota or key says."""

    resort_at: float = -math.inf
    """When it may be asked if there is nothing else to ask, if not required longer."""

    probed_at: float | None = None
    """When the probe under way began; None: there is none."""

    failed_at: float = -math.inf
    quick: int = 0
    """Failures that followed each other within a minute."""

    rungs: dict[str, int] = {}
    """Where on each ladder it stands, by its name."""

    kind: ModelFault | None = None
    why: str = ""
    """The last failure: of what kind it was, and what the provider said."""

    @property
    def is_closed(self) -> bool:
        """Whether it did not fail since it answered last."""
        return self.until == -math.inf

    @property
    def free_at(self) -> float:
        """When it is one like any other again."""
        return max(self.until, self._after_probe)

    @property
    def last_resort_at(self) -> float:
        """When it may be asked if there is nothing else."""
        guessed = min(self.until, self.resort_at)
        return max(self.required_until, guessed, self._after_probe)

    @property
    def _after_probe(self) -> float:
        return -math.inf if self.probed_at is None else self.probed_at + PROBE

    def begin(self, now: float) -> bool:
        """Let a call begin; tell whether it is the probe."""
        if self.is_closed or self.probed_at is not None:
            return False
        self.probed_at = now
        return True

    def end(self, probed_at: float) -> None:
        """Let the probe be over that began then, if it still is the one."""
        if self.probed_at == probed_at:
            self.probed_at = None

    def succeeded(self, now: float) -> None:
        """Close it, but for what is required: the call had begun before that."""
        kept = {"quota": self.rungs["quota"]} if "quota" in self.rungs else {}
        is_kept = self.required_until > now
        self.until = self.required_until = self.required_until if is_kept else -math.inf
        self.resort_at, self.probed_at = -math.inf, None
        self.failed_at, self.quick = -math.inf, 0
        self.kind, self.why = None, ""
        self.rungs = kept if is_kept else {}

    def failed(self, kind: ModelFault, asked: float | None, now: float) -> None:
        """Open it.

        Args:
            asked: seconds the provider asked for; None: it did not.
            now: seconds on the caller's monotonic clock.
        """
        is_apart = now - self.failed_at >= FORGET_QUICK
        self.quick = 1 if is_apart else self.quick + 1
        required, guessed = asked or 0.0, 0.0
        if kind == "quota":
            required = max(required, self._climb(kind, QUOTA_LADDER, now))
        elif kind == "auth":
            required = max(required, self._climb(kind, AUTH_LADDER, now))
        elif kind not in {"rate", "overload"}:
            guessed = SHORT
        elif asked is None:
            if now >= self.until + FORGET_RUNG:
                self.rungs.pop("guess", None)
            guessed = self._climb("guess", LADDER, now)
        self.required_until = max(self.required_until, now + required)
        self.until = max(self.until, self.required_until, now + guessed)
        wait = QUICK * 2.0 ** min(self.quick - 1, 30)
        self.resort_at = now + min(wait, LONGEST_QUICK)
        self.failed_at, self.probed_at = now, None

    def learn(self, failure: LearntFailure, now: float) -> None:
        """Open it after a failure that another node has seen."""
        self.required_until = max(self.required_until, now + failure.required)
        self.until = max(self.until, self.required_until, now + failure.guessed)
        self.resort_at = max(self.resort_at, now + QUICK)
        self.kind, self.why = failure.kind, failure.why

    def _climb(self, name: str, ladder: tuple[float, ...], now: float) -> float:
        """Give the seconds of the next rung; calls that fail together are one step."""
        rung = self.rungs.get(name, -1)
        if rung < 0 or now >= self.until:
            rung = min(rung + 1, len(ladder) - 1)
        self.rungs = {**self.rungs, name: rung}
        return ladder[rung]


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
        self._circuits: dict[Backend | str, Circuit] = {}
        """Of backends, and of accounts by their names, that are not closed."""

        self._uses: dict[Backend, BackendUse] = {}

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
        self._uses = {b: use for b, use in self._uses.items() if b in staying}
        whose: set[Backend | str] = {*staying, *(each.account for each in staying)}
        self._circuits = {x: known for x, known in self._circuits.items() if x in whose}

    def has(self, model: str) -> bool:
        """Tell whether there is a model of this name."""
        return model in self._offers

    @property
    def out(self) -> frozenset[str]:
        """Accounts that did not take their keys when they were asked last."""
        return frozenset([x for x in self._circuits if isinstance(x, str)])

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
        if len(found) == 1:  # nothing to put in order, as most often
            return [wanted.model]
        return sorted(found, key=lambda name: self._lacks(name, wanted))

    def choose(self, wanted: BackendQuery, now: float) -> Backend | NoBackend:
        """Choose whom to ask: by model, then preference, then the least used.

        Args:
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
        let_in = [x for x in everyone if self._circuit(x.account).until <= now]
        circuits = (self._circuit(w) for x in everyone for w in (x.account, x))
        last = next((each for each in circuits if each.kind), Circuit())
        at = min(map(self.last_resort_at, let_in), default=NEVER)
        return NoBackend(at, last.kind, last.why)

    def begin(self, backend: Backend, now: float) -> float | None:
        """Count a call that begins; give `now` if it is a probe."""
        use = self._uses.setdefault(backend, BackendUse())
        use.count, use.at = use.of(now) + 1.0, now
        use.in_flight += 1
        if not self._circuits:  # all are closed: there is nothing to probe
            return None
        begun = [self._circuit(x).begin(now) for x in (backend, backend.account)]
        return now if any(begun) else None

    def end(self, backend: Backend, probed_at: float | None = None) -> None:
        """Count a call that is over, however it ended.

        Args:
            probed_at: as `begin` gave it; after a probe the next call may be one.
        """
        use = self._uses.get(backend)
        if use is not None and use.in_flight > 0:
            use.in_flight -= 1
        if probed_at is not None:
            self._circuit(backend).end(probed_at)
            self._circuit(backend.account).end(probed_at)

    def succeeded(self, backend: Backend, now: float) -> bool:
        """Close its circuit, and its account's.

        While the provider asks for rest, or the quota is used up, that is kept: the
        call had begun before. So had one that ends well while its account is left
        alone for its key: it does not prove the key, but the next call may.

        Returns:
            Whether its account takes its key again.
        """
        account = self._circuits.get(backend.account)
        is_taken = account is not None and account.required_until <= now
        if account is not None and not is_taken:
            account.until = account.required_until = now
        else:
            self._circuits.pop(backend.account, None)
        circuit = self._circuits.get(backend)
        if circuit is not None:
            circuit.succeeded(now)
            if circuit.is_closed:
                del self._circuits[backend]
        return is_taken

    def failed(
        self,
        backend: Backend,
        kind: ModelFault,
        retry_after: float | None,
        now: float,
        why: str = "",
    ) -> None:
        """Open the circuit of a backend after a failure, or of its account.

        Args:
            kind: of what kind; what is the request's own fault changes nothing, nor
                does a senseless answer (`protocol`) without a `retry_after`.
            retry_after: seconds the provider asked for; None, or not a number, if it
                did not.
            now: seconds on the caller's monotonic clock.
            why: what the provider said, as in `CallEnded`.
        """
        if kind in {"context", "vision", "content", "bad_request"}:
            return
        if kind == "protocol" and hint(retry_after) is None:
            return
        whose = backend.account if kind == "auth" else backend
        circuit = self._circuits.setdefault(whose, Circuit())
        circuit.failed(kind, hint(retry_after), now)
        circuit.kind, circuit.why = kind, why

    def circuit_of(self, whose: Backend | str) -> Circuit | None:
        """Give the circuit of a backend, or of an account; None: it is closed."""
        return self._circuits.get(whose)

    def learn(
        self, whose: Backend | str, failure: LearntFailure | None, now: float
    ) -> None:
        """Go by what another node was told: it is as if it had been told to this one.

        Args:
            whose: the backend, or the account; one that is not offered is passed over.
            failure: why it is to be left alone, and how long; None: it answers again.
            now: seconds on the caller's monotonic clock.
        """
        if failure is None and isinstance(whose, str):
            self._circuits.pop(whose, None)  # its key was proven after it had failed
        elif failure is None and (known := self._circuits.get(whose)) is not None:
            known.succeeded(now)
            if known.is_closed:
                del self._circuits[whose]
        elif failure is not None and self._is_offered(whose):
            self._circuits.setdefault(whose, Circuit()).learn(failure, now)

    def _is_offered(self, whose: Backend | str) -> bool:
        offers = self._offers.values()
        if isinstance(whose, str):
            return any(whose in each.accounts for each in offers)
        return self.has(whose.model) and (
            whose.account in self._offers[whose.model].accounts
        )

    def free_at(self, backend: Backend) -> float:
        """When a backend is one like any other; in the past if it is."""
        if not self._circuits:
            return -math.inf
        own, account = self._circuit(backend), self._circuit(backend.account)
        return max(own.free_at, account.free_at)

    def last_resort_at(self, backend: Backend) -> float:
        """When a backend may be asked if there is nothing else to ask."""
        own, account = self._circuit(backend), self._circuit(backend.account)
        return max(own.last_resort_at, account.free_at)

    def _circuit(self, whose: Backend | str) -> Circuit:
        """Give the circuit of a backend or an account; a closed one is not kept."""
        return self._circuits.get(whose) or Circuit()

    def use(self, backend: Backend, now: float) -> tuple[int, float]:
        """Give its calls in flight, and what all its calls count for."""
        known = self._uses.get(backend)
        return (known.in_flight, known.of(now)) if known is not None else (0, 0.0)

    def cooling(self, now: float) -> list[Backend]:
        """Name the backends whose circuit, or that of their account, is open."""
        if not self._circuits:
            return []
        names = (
            Backend(account, offer.name)
            for offer in self._offers.values()
            for account in offer.accounts
        )
        return [
            each
            for each in names
            if max(self._circuit(x).until for x in (each, each.account)) > now
        ]

    def _candidates(self, wanted: BackendQuery, now: float) -> Iterator[Backend]:
        for name in self.line(wanted):
            backends = [Backend(each, name) for each in self._offers[name].accounts]
            if len(backends) > 1:
                backends = self._in_order(backends, now)
            yield from backends

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


class TriedBackends(msgspec.Struct, eq=False):
    """The backends already tried for one call."""

    model: str
    """Which of `[models.<name>]` is to be asked next."""

    why: str = ""
    """What the provider that failed last said, in words that quote nobody."""

    _tried: set[Backend] = msgspec.field(default_factory=set)
    _rounds: int = 1
    _calls: int = 0
    _last: ModelFault = "overload"
    _held: float = 0.0
    _waited: float = 0.0

    @property
    def tried(self) -> frozenset[Backend]:
        """Who was asked in this round."""
        return frozenset(self._tried)

    @property
    def excuse(self) -> str:
        """What to tell the person."""
        return NEUTRAL.get(self._last, "not available")

    def learn(self, kind: ModelFault | None, why: str) -> None:
        """Take over why the others are left alone, where none of them was asked."""
        if kind is not None and not self._calls:
            self._last, self.why = kind, why

    def failed(
        self, backend: Backend, kind: ModelFault, larger: str, why: str = ""
    ) -> Step:
        """Say how to go on after a failure.

        Args:
            why: what the provider said, in words that quote nobody.
            larger: the model for transcripts too long for this one; empty: none.
        """
        self._calls += 1
        self._tried.add(backend)
        self._last, self.why = kind, why
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
