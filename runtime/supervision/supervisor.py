"""Who starts, watches and restarts whom: OTP's supervisor as an actor.

`restarts.py` decides, this carries out. Children start in order and stop in
reverse. A restarted child keeps its ref and its mailbox; a back-off lies between
restarts. When children need more restarts than the intensity allows, the
supervisor stops them all and fails, and its own supervisor decides.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import Any, ClassVar, assert_never

import msgspec
import trio

from runtime.actor import lifecycle
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import NORMAL, SHUTDOWN, ChildEnded, Exit, Stop
from runtime.actor.ref import ActorRef
from runtime.actor.reply import Reply
from runtime.errors import (
    DeclineStart,
    MisuseError,
    RestartLimitError,
    StartError,
    text_of,
)
from runtime.supervision import restarts
from runtime.supervision.child import (
    Child,
    ChildSpec,
    as_rule,
    in_trio,
    kill,
    kill_for_good,
    new_cell,
    turn_down,
    was_asked,
)
from runtime.supervision.restarts import Backoff, RestartWindow, Strategy


class SupervisorConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who is restarted together, and how often."""

    strategy: Strategy = "one_for_one"
    intensity: int = 12
    """Restarts allowed inside one period before the supervisor itself fails. Enough
    for one child to be restarted with ever longer back-off, and not for several."""

    period: float = 60.0
    """Seconds."""

    backoff: Backoff = Backoff()


# Chosen: what always fails is started at intervals that grow to a minute; it never
# takes others along, however long that goes on.
LONGEST_WAIT = 60.0
NEVER_TOO_OFTEN = 1_000_000


def endless(first: float) -> SupervisorConfig:
    """Restart the children of one program together, and never give up.

    Args:
        first: seconds before the first restart; each further one waits twice as long,
            up to a minute, or up to `first` if that is longer.
    """
    longest = max(LONGEST_WAIT, first)
    backoff = Backoff(first=first, then=first, maximum=longest)
    return SupervisorConfig("rest_for_one", NEVER_TOO_OFTEN, 60.0, backoff)


class StartChild(msgspec.Struct, frozen=True):
    """Ask a supervisor for one more child; the answer is its ref.

    The ask fails with `StartError` if the child does not start, and with
    `MisuseError` if the name is taken. A child that declines answers None.
    """

    spec: ChildSpec


class StopChild(msgspec.Struct, frozen=True):
    """Ask a supervisor to end a child for good; False if it had ended before.

    A `RestartChild`, or a restart of its whole group (OTP), starts a successor.
    """

    name: str
    forget: bool = False
    """Whether to take it off the list too, so that nothing starts it again."""


class RestartChild(msgspec.Struct, frozen=True):
    """Ask a supervisor to start a child that has ended, or waits for its restart.

    The answer is its ref, None if it declines. Of one that had ended for good it is
    a new one: the dead stay dead.
    """

    name: str


class RenewChild(msgspec.Struct, frozen=True):
    """Ask a supervisor to go on with a child as this says; the answer is its ref.

    A child that runs is stopped in order, keeps its ref and its mailbox, and begins
    anew by the new spec, at its place among its siblings. One that is not there, or
    has ended for good, is started as by `StartChild`, whose errors this has, too.
    """

    spec: ChildSpec


class RestartDue(msgspec.Struct, frozen=True):
    """A supervisor's note to itself: the back-off of these children is over."""

    names: tuple[str, ...]
    plan: int
    """Children that another plan has taken up since are left to that one."""


class Supervisor(Actor):
    """Starts its children in order, restarts them by its strategy, stops them.

    Takes: `StartChild`, `StopChild`, `RestartChild`, `RenewChild`; `ChildEnded` from
        the kernel.
        It cannot be interrupted.
    Sends: nothing.
    Keeps: its children and their recent failures.
    Fails: when its children need more restarts than intensity and period allow.
    Ends: with its children, last started first, each within its shutdown time.
    """

    has_children: ClassVar[bool] = True
    deadline: ClassVar[float | None] = None
    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=10_000)

    def __init__(
        self,
        specs: Iterable[ChildSpec] = (),
        config: SupervisorConfig | None = None,
    ) -> None:
        super().__init__()
        self._specs = tuple(specs)
        self._config = config or SupervisorConfig()
        self._window = RestartWindow(self._config.intensity, self._config.period)
        self._children: dict[str, Child] = {}
        self._plans = 0
        self._is_to_end = False
        self._starting: trio.CancelScope | None = None

    def on_start(self) -> Any:
        """Start the children in order; if one fails, stop the others and fail."""
        return self._start_all()

    def on_receive(self, message: object) -> object:
        """Carry out what is asked, and deal with children that ended."""
        match message:
            case ChildEnded():
                return self._child_ended(message)
            case RestartDue():
                return self._start_again(message)
            case StartChild() | RestartChild() | RenewChild():
                return self._see_to(self._as_asked(message))
            case StopChild():
                return self._stop_child(message)
            case _:
                turn_down(self._cell, message)
                return None

    def on_stop_due(self) -> None:
        """Give up a start that is under way, and those that would follow."""
        self._is_to_end = True
        if self._starting is not None:
            self._starting.cancel()

    async def end_children(self, *, brutally: bool) -> None:
        """End all children, the one started last first; brutally: all at once."""
        children = tuple(reversed(self._children.values()))
        if brutally:
            replies = [kill_for_good(child.cell) for child in children]
            for reply in replies:
                await reply
        else:
            for child in children:
                await self._end(child)
        self._children.clear()

    # --- starting -----------------------------------------------------------

    async def _start_all(self) -> None:
        for spec in self._specs:
            try:
                await self._add(spec)
            except Exception as error:
                what = f"{self.actor_urn}: child {spec.name!r} did not start"
                raise StartError(f"{what}: {text_of(error)}") from error

    def _as_asked(
        self, message: StartChild | RestartChild | RenewChild
    ) -> Awaitable[ActorRef | None]:
        match message:
            case StartChild(spec=spec):
                return self._add(spec)
            case RestartChild(name=name):
                return self._restart_child(name)
            case RenewChild(spec=spec):
                return self._renew_child(spec)

    async def _see_to(self, starting: Awaitable[ActorRef | None]) -> ActorRef | None:
        """Give an asker what goes wrong; a mere teller must not end the siblings."""
        is_asked = was_asked(self._cell)
        try:
            return await starting
        except Exception as error:
            if is_asked:
                raise
            self._cell.kernel.report(
                "child not started", {"actor": self.actor_urn, "error": error}
            )
            return None

    async def _add(self, spec: ChildSpec) -> ActorRef | None:
        """Start a new child, or the successor of one that has ended for good."""
        known = self._children.get(spec.name)
        if known is not None and not known.cell.is_dead:
            raise MisuseError(
                f"{self.actor_urn} has a child {spec.name!r} already: stop it first"
            )
        before = known.cell if known is not None else None
        child = Child(spec, new_cell(self._cell, spec, before))
        self._children[spec.name] = child
        try:
            return await self._bring_up(child)
        except Exception as error:
            ended = child.cell.last_exit or Exit("failed", error)
            lifecycle.bury(child.cell, ended)
            if known is not None:
                self._children[spec.name] = known
            else:
                del self._children[spec.name]
            raise

    async def _bring_up(self, child: Child) -> ActorRef | None:
        """Start an incarnation; None if it declines, which ends it for good.

        Raises:
            Exception: what its start raised; `ChildEnded` will come, too.
        """
        cell, ref = child.cell, child.cell.ref
        child.see_end()
        try:
            await self._wait_started(child, lifecycle.start(cell))
        except DeclineStart:
            lifecycle.bury(cell, NORMAL)
            return None
        return ref

    async def _wait_started(self, child: Child, reply: Reply | None) -> None:
        if reply is None:
            return
        seconds = 0.0 if self._is_to_end else child.spec.start_timeout
        with trio.move_on_after(in_trio(seconds)) as self._starting:
            try:
                await reply
            finally:  # it holds the error, whose traceback holds this frame
                del reply
            return
        await kill(child.cell)
        why = f"did not start within {seconds} s"
        if self._is_to_end:
            why = f"was not started: {self.actor_urn} is asked to end"
        raise StartError(f"{child.cell.name} {why}")

    # --- ends -----------------------------------------------------------------

    def _child_ended(self, ended: ChildEnded) -> object:
        child = self._children.get(ended.name.removeprefix(f"{self.actor_urn}/"))
        if child is None or ended.generation <= child.seen:
            return None
        child.seen = ended.generation
        if child.cell.is_dead:  # it was asked to end for good, or declined to run
            if child.spec.restart == "temporary":
                del self._children[child.spec.name]
            return None
        return self._deal_with(child, ended.exit)

    def _deal_with(self, child: Child, exit_: Exit) -> object:
        """Decide about an end; plain when nothing has to be waited for."""
        alone = self._config.strategy == "one_for_one"
        group = [child] if alone else self._children.values()
        plan = restarts.decide(
            restarts.RestartRequest(
                self._config.strategy,
                tuple(each.as_rule() for each in group),
                child.spec.name,
                as_rule(exit_),
            ),
            self._window,
            trio.current_time(),
        )
        match plan:
            case restarts.Leave():
                lifecycle.bury(child.cell, exit_)
                return None
            case restarts.Forget():
                self._forget(child, exit_)
                return None
            case restarts.Restart():
                return self._restart(child, exit_, plan)
            case restarts.Escalate(text=text):
                raise RestartLimitError(f"{self.actor_urn}: {text}") from exit_.error
            case _:
                assert_never(plan)

    def _forget(self, child: Child, exit_: Exit) -> None:
        del self._children[child.spec.name]
        lifecycle.bury(child.cell, exit_)

    def _restart(self, child: Child, exit_: Exit, plan: restarts.Restart) -> object:
        kernel = self._cell.kernel
        kernel.restarts[child.cell.actor_class.__name__, exit_.reason] += 1
        seconds, child.failures = self._config.backoff.delay(
            child.failures, trio.current_time(), kernel.roll()
        )
        kernel.report(
            "actor restarts",
            {"actor": child.cell.name, "reason": exit_.reason, "after": seconds},
        )
        return self._carry_out(plan, seconds)

    async def _carry_out(self, plan: restarts.Restart, seconds: float) -> None:
        for name in plan.stop:
            await self._end(self._children[name], for_good=name in plan.forget)
        for name in plan.forget:
            self._forget(self._children[name], SHUTDOWN)
        self._plans += 1
        for name in plan.start:
            child = self._children[name]
            child.plan = self._plans
            if child.cell.is_dead:
                child.cell = new_cell(self._cell, child.spec, child.cell)
        due = RestartDue(plan.start, self._plans)
        if seconds > 0:
            self.after(seconds, due)
        else:
            await self._start_again(due)

    async def _start_again(self, due: RestartDue) -> None:
        """Start children again in order, up to one that fails to start."""
        for name in due.names:
            child = self._children.get(name)
            if child is None or child.plan != due.plan or child.cell.state != "down":
                continue
            child.cell.restarts += 1
            try:
                await self._bring_up(child)
            except Exception:  # noqa: BLE001  its `ChildEnded` says it, and comes next
                if not child.cell.is_dead:
                    return

    async def _end(self, child: Child, *, for_good: bool = True) -> None:
        """End a child within its shutdown time, then without mercy."""
        cell = child.cell
        child.see_end()
        cell.is_final = cell.is_final or for_good
        seconds = child.spec.shutdown
        if child.is_running and seconds != 0:
            ended = Reply()
            cell.tell_end(ended)
            cell.post_system(Stop(SHUTDOWN))
            with trio.move_on_after(in_trio(seconds)):
                await ended
                return
        await kill(cell)
        if for_good:
            lifecycle.bury(cell, SHUTDOWN)

    async def _stop_child(self, order: StopChild) -> bool:
        child = self._children.get(order.name)
        if child is None:
            return False
        was_alive = not child.cell.is_dead
        await self._end(child)
        if order.forget or child.spec.restart == "temporary":
            del self._children[order.name]
        return was_alive

    async def _restart_child(self, name: str) -> ActorRef | None:
        child = self._children.get(name)
        if child is None:
            known = ", ".join(self._children) or "none"
            raise MisuseError(f"{self.actor_urn} has no child {name!r}; known: {known}")
        if child.is_running:
            raise MisuseError(f"{child.cell.name} is running: stop it first")
        if child.cell.is_dead:
            return await self._add(child.spec)
        child.cell.restarts += 1
        return await self._bring_up(child)

    async def _renew_child(self, spec: ChildSpec) -> ActorRef | None:
        child = self._children.get(spec.name)
        if child is None or child.cell.is_dead:
            return await self._add(spec)
        await self._end(child, for_good=False)
        # A restart that was due before must not start it once more.
        self._plans += 1
        child.spec, child.plan = spec, self._plans
        child.cell.remake(spec.start)
        return await self._bring_up(child)
