"""The actor that grants permits: how many turns run at once, and which is next.

Each model has permits of its own, so that one that hangs holds up nobody who asks
another. Within a model connectors take turns, within a connector its callers (API keys
and addresses), and behind a caller its people, so that nobody who asks much keeps
others waiting. None of them ever holds all of several permits: one of several
connectors has three quarters, a caller three quarters of its connector's, a person of
their caller's. An only connector may have all. `runtime/fairness.py` has the rule.

Turns that may have ended the process run one at a time, over all models.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import msgspec
import trio

from actors.protocol import AcquirePermit, PermitGranted, ReleasePermit
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.ref import ActorRef
from runtime.fairness import Owner, PlacesHeld, WaitingTurns
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from runtime.telemetry.metrics import Gauge

# Chosen: sessions give their permits back themselves; this is for those that were
# killed with their whole branch of the tree, or ended while their turn still ran.
LOOK_EVERY = 5.0

# Chosen: longer than a model needs for its first words, and than most turns take.
STUCK_AFTER = 120.0
"""Seconds in which a model gave no permit back, while turns wait for one, after which
it counts as stuck."""

# Chosen: longer than a person waits for the turns of others on a busy day.
LATE_AFTER = 60.0
"""Seconds after which a turn that waits is late."""

LOG = EventLog("limiter")


class HeldPermit(msgspec.Struct, frozen=True):
    """A permit that a session has."""

    session: ActorRef
    model: str = ""
    owner: Owner = ("", "", "")
    is_suspect: bool = False


class PermitHandover(msgspec.Struct, frozen=True):
    """What a restarted limiter takes over: who holds a permit."""

    holders: dict[Permit, HeldPermit]


class IsWorking(msgspec.Struct, frozen=True, tag=True):
    """Asked: does a session whose key begins like this run a turn, or wait for one?"""

    prefix: str


class StuckModels(msgspec.Struct, frozen=True):
    """Asked: which models are stuck, if no other model is at work? Else none."""


class CheckPermitHolders(msgspec.Struct, frozen=True):
    """A note to itself: free the permits of sessions that no longer live."""


Permit = tuple[str, str]
"""Whose it is, and for which turn."""

Waiting = OrderedDict[Permit, AcquirePermit]
"""In the order asked."""

Grantable = Callable[[Owner, AcquirePermit | None], bool]
"""Tells whether an owner may have one more permit; with a request, for that."""


class PermitQueue:
    """The sessions that wait for a permit of one model; pure.

    The most urgent priority goes first. Within it go turns that are under way, then
    connectors take turns, then the callers of a connector, then the people of a caller;
    one person's turns go in the order asked. Where something less urgent is late, every
    second permit goes to what has waited longest of that, so that nothing is put off
    for ever.
    """

    def __init__(self) -> None:
        self._asked: dict[Permit, AcquirePermit] = {}
        self._since: dict[Permit, float] = {}
        self._was_late = False
        """Whether the last one taken was late."""

        self._under_way: dict[int, Waiting] = {}
        self._lines: dict[int, WaitingTurns[Permit]] = {}

    def __len__(self) -> int:
        """Count the sessions that wait."""
        return len(self._asked)

    def asked(self) -> list[AcquirePermit]:
        """Give all requests, in the order in which they came."""
        return list(self._asked.values())

    def add(self, asked: AcquirePermit, now: float) -> None:
        """Take a request in; its turn has no other.

        Args:
            now: seconds on the caller's monotonic clock.
        """
        permit = asked.permit
        self._asked[permit], self._since[permit] = asked, now
        if asked.is_under_way:
            self._under_way.setdefault(asked.priority, OrderedDict())[permit] = asked
        else:
            line = self._lines.setdefault(asked.priority, WaitingTurns())
            line.add(asked.owner, permit)

    def remove(self, permit: Permit) -> bool:
        """Forget a request; False: there is none."""
        asked = self._asked.pop(permit, None)
        if asked is None:
            return False
        del self._since[permit]
        if asked.is_under_way:
            queue = self._under_way[asked.priority]
            del queue[permit]
            if not queue:
                del self._under_way[asked.priority]
            return True
        line = self._lines[asked.priority]
        line.remove(asked.owner, permit)
        if not line:
            del self._lines[asked.priority]
        return True

    def take(
        self, may: Grantable, now: float, last: Owner = ()
    ) -> AcquirePermit | None:
        """Take the next request that may be granted; None: there is none.

        Its connector, its caller among those of the connector, and its sender among
        those of the caller, come last then.

        Args:
            may: tells whether somebody may have one more permit.
            now: seconds on the caller's monotonic clock.
            last: who had the last permit, perhaps while nobody waited.
        """
        priorities = sorted({*self._under_way, *self._lines})
        found = [self._next(priority, may, last) for priority in priorities]
        heads = [each for each in found if each is not None]
        late = [x for x in heads[1:] if now - self._since[x.permit] >= LATE_AFTER]
        self._was_late = bool(late) and not self._was_late
        asked = next(iter(heads), None)
        if self._was_late:
            asked = min(reversed(late), key=lambda each: self._since[each.permit])
        if asked is not None:
            self.remove(asked.permit)
            if asked.priority in self._lines:
                self._lines[asked.priority].move_back(asked.owner)
        return asked

    def _next(self, priority: int, may: Grantable, last: Owner) -> AcquirePermit | None:
        if priority in self._under_way:
            # It held a permit before, so it may have one again.
            return next(iter(self._under_way[priority].values()))
        found = self._lines[priority].next(
            lambda owner, permit: may(owner, permit and self._asked[permit]), last
        )
        return None if found is None else self._asked[found[1]]


class Limiter(Actor):
    """Grants permits to sessions: the most urgent first, fairly among senders.

    Takes: `AcquirePermit`, `ReleasePermit`, `IsWorking` and `StuckModels` (asked).
    Sends: `PermitGranted` to the session whose turn it is.
    Keeps: who holds a permit and who waits for one.
    Fails: never by these messages; what it keeps goes to its next incarnation.
    Ends: with the system.

    Args:
        most: turns at once of one model; called each time if it may change.
        waiting: shows how many turns wait, by model.
        running: shows how many are under way, by model.
        connectors: gives how many connectors there are at present.
    """

    # Chosen: one message for each session awake, and its release.
    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=100_000)

    def __init__(
        self,
        most: int | Callable[[], int],
        waiting: Gauge | None = None,
        running: Gauge | None = None,
        *,
        connectors: Callable[[], int],
    ) -> None:
        super().__init__()
        self._connectors = connectors
        self._most = most if callable(most) else lambda: most
        self._shown = waiting
        self._shown_running = running
        self._holders: dict[Permit, HeldPermit] = {}
        self._held: dict[str, dict[Permit, HeldPermit]] = {}
        """The same by model."""

        self._shares: defaultdict[str, PlacesHeld] = defaultdict(PlacesHeld)
        """The same, counted by owner."""

        self._last: dict[str, Owner] = {}
        """By model of which somebody holds or awaits a permit: who had the last one."""

        self._turns: dict[str, set[str]] = {}
        """By session: the turns for which it holds or awaits a permit."""

        self._queues: dict[str, PermitQueue] = {}
        self._moved_at: dict[str, float] = {}
        """By model with turns that wait: when it last gave a permit back, in
        `trio.current_time()` seconds, or the first of them began to wait."""

        self._known_stuck: frozenset[str] = frozenset()
        self._is_to_look = False
        """Whether a `CheckPermitHolders` is on its way; only while somebody holds a
        permit."""

    def on_start(self) -> None:
        """Show that nobody waits: one that was killed has taken along who did."""
        if self._shown is not None:
            self._shown.reset()

    def on_failure(self, *_: object, **__: object) -> None:
        """Hand on who holds a permit and who waits, in their order."""
        for queue in self._queues.values():
            for asked in reversed(queue.asked()):
                self.requeue(asked)
        self.requeue(PermitHandover(dict(self._holders)))

    def on_receive(self, message: object) -> object:
        """Grant, queue or take back."""
        match message:
            case IsWorking(prefix=prefix):
                return self._is_at_work(prefix)
            case StuckModels():
                stuck = self._stuck()
                return stuck if {*stuck} >= {*self._held} else ()
            case AcquirePermit():
                self._acquire(message)
            case ReleasePermit():
                self._release(message)
            case PermitHandover(holders=holders):
                for permit, held in holders.items():
                    self._hold(permit, held)
            case CheckPermitHolders():
                self._is_to_look = False
                self._take_back()
                self._tell_of_stuck()
            case _:
                return super().on_receive(message)
        self._look_later()
        return None

    def _is_at_work(self, prefix: str) -> bool:
        return any(name.startswith(prefix) for name in self._turns)

    def _stuck(self) -> tuple[str, ...]:
        before = trio.current_time() - STUCK_AFTER
        return tuple(
            name
            for name, at in self._moved_at.items()
            if at <= before and self._keeps_waiting(name)
        )

    def _keeps_waiting(self, model: str) -> bool:
        """Whether anybody waits who holds no permit of a model themselves."""
        held, queue = self._shares.get(model), self._queues.get(model, PermitQueue())
        return held is not None and any(
            not held.held(asked.owner) or not any(asked.owner)
            for asked in queue.asked()
        )

    def _tell_of_stuck(self) -> None:
        """Write once of each model that is stuck."""
        stuck = self._stuck()
        for model in stuck:
            if model not in self._known_stuck:
                turns, waiting = len(self._held.get(model, ())), self._queues[model]
                LOG.warning(
                    "model keeps all its turns waiting",
                    model=model,
                    turns=turns,
                    waiting=len(waiting),
                    seconds=STUCK_AFTER,
                )
        self._known_stuck = frozenset(stuck)

    def _know(self, permit: Permit) -> None:
        holder, turn_id = permit
        self._turns.setdefault(holder, set()).add(turn_id)

    def _forget(self, permit: Permit) -> None:
        holder, turn_id = permit
        turns = self._turns.get(holder, set[str]())
        turns.discard(turn_id)
        if not turns:
            self._turns.pop(holder, None)

    def _hold(self, permit: Permit, held: HeldPermit) -> None:
        if permit in self._holders:
            self._drop(permit)
        self._know(permit)
        self._holders[permit] = held
        self._held.setdefault(held.model, {})[permit] = held
        self._shares[held.model].add(held.owner)
        self._show_running(held.model)

    def _acquire(self, asked: AcquirePermit) -> None:
        """Grant a permit at once if nobody waits for one, or else in its turn."""
        permit, model = asked.permit, asked.model
        if asked.turn_id in self._turns.get(asked.holder, ()):  # it asks again
            self._leave(permit)
        is_free = len(self._held.get(model, ())) < self._most()
        if is_free and model not in self._queues and self._may_have(asked):
            self._hand_out(asked, permit)
            return
        now = trio.current_time()
        self._know(permit)
        self._queues.setdefault(model, PermitQueue()).add(asked, now)
        self._moved_at.setdefault(model, now)
        self._grant(model)

    def _may_have(self, asked: AcquirePermit) -> bool:
        """Whether a request's owner, and each name before it, may have one more."""
        if not asked.is_suspect and asked.model not in self._held:
            return True  # nobody has one, as most often
        # With all names before theirs.
        may_hold = self._may_hold(asked.model, asked.owner, None)
        if not asked.is_suspect:
            return may_hold
        return may_hold and self._may_hold(asked.model, asked.owner, asked)

    def _hand_out(self, asked: AcquirePermit, permit: Permit) -> None:
        model = asked.model
        held = HeldPermit(asked.session, model, asked.owner, asked.is_suspect)
        self._hold(permit, held)
        if self.tell(asked.session, PermitGranted(asked.turn_id)):
            self._last[model] = held.owner
        else:
            self._drop(permit)

    def _grant(self, model: str) -> None:
        queue = self._queues.get(model)
        may = partial(self._may_hold, model)
        while queue and len(self._held.get(model, ())) < self._most():
            asked = queue.take(may, trio.current_time(), self._last.get(model, ()))
            if asked is None:
                break  # whoever waits holds their share already
            self._hand_out(asked, asked.permit)
        if not queue:
            self._queues.pop(model, None)
            self._moved_at.pop(model, None)
            if model not in self._held:
                self._last.pop(model, None)
        if self._shown is not None and queue is not None:
            self._shown.set(len(queue), model)

    def _may_hold(self, model: str, owner: Owner, asked: AcquirePermit | None) -> bool:
        """Whether an owner, and each name before it, may have one more permit."""
        if asked is not None:
            holders = self._holders.values()
            return not (asked.is_suspect and any(x.is_suspect for x in holders))
        first = 0 if self._connectors() > 1 else 1
        return self._shares[model].may_add(owner, self._most(), first)

    def _look_later(self) -> None:
        if self._holders and not self._is_to_look:
            self._is_to_look = True
            self.after(LOOK_EVERY, CheckPermitHolders())

    def _take_back(self) -> None:
        """Take back the permits of sessions that were killed and could not say so."""
        for permit, held in tuple(self._holders.items()):
            if not held.session.is_alive():
                self._leave(permit)
        for model in tuple(self._queues):
            self._grant(model)  # the settings may allow more now

    def _release(self, back: ReleasePermit) -> None:
        turns = {back.turn_id} if back.turn_id else self._turns.get(back.holder, ())
        for turn_id in tuple(turns):
            self._leave((back.holder, turn_id))

    def _leave(self, permit: Permit) -> None:
        """Take back a permit or the request for it, and grant what is free then."""
        for model, queue in tuple(self._queues.items()):
            if queue.remove(permit):
                self._grant(model)
        held = self._drop(permit)
        if held is not None:
            if held.model in self._moved_at:
                self._moved_at[held.model] = trio.current_time()
            self._grant(held.model)
            if held.is_suspect:
                for model in tuple(self._queues):
                    self._grant(model)

    def _drop(self, permit: Permit) -> HeldPermit | None:
        self._forget(permit)
        held = self._holders.pop(permit, None)
        if held is not None:
            of_model = self._held[held.model]
            del of_model[permit]
            self._shares[held.model].remove(held.owner)
            if not of_model:
                del self._held[held.model], self._shares[held.model]
            self._show_running(held.model)
        return held

    def _show_running(self, model: str) -> None:
        if self._shown_running is not None:
            self._shown_running.set(len(self._held.get(model, ())), model)
