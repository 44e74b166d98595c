"""How an incarnation of an actor starts and ends.

Functions over a cell, kept apart from `cell.py` so that each file has one noun.
An end runs in this order: children, then the actor's hook, then the supervisor
is told. Nothing here decides whether a new incarnation follows: supervisors do.
"""

from __future__ import annotations

from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pykka
import trio

from runtime.actor.actor import Actor
from runtime.actor.envelope import Notice
from runtime.actor.mailbox import EMPTY
from runtime.actor.messages import (
    KILLED,
    PASSIVATED,
    ChildEnded,
    Exit,
    Stop,
    Terminated,
    graver,
)
from runtime.actor.reply import Reply
from runtime.errors import (
    DeadlineError,
    DeclineStart,
    MisuseError,
    ProgramEndError,
    StartError,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from runtime.actor.cell import Cell
    from runtime.actor.dead_letters import Reason
    from runtime.actor.timers import Timer

# Chosen: after the watchdog had to end an actor, it must run again within this many
# seconds (back-off included) or the operator is told that it does not.
VERIFY_AFTER = 30.0

# Chosen: a handler that was cancelled gets this many seconds to clean up before it
# is left behind and its actor replaced.
PATIENCE = 5.0

CANCELLED: Final = object()
"""What a coroutine gave that was cancelled and raised nothing else."""


def start_task(cell: Cell, call: Callable[..., Awaitable[object]], *args: Any) -> None:
    """Start a task of the actor's own in the system's nursery."""
    nursery = cell.kernel.nursery
    if nursery is None:
        raise MisuseError("the actor system is not open; use `async with`")
    nursery.start_soon(call, *args, name=cell.name)


def refuse_other(found: object) -> None:
    """Refuse what is no actor, as a class or a function, and one that has run before.

    Raises:
        MisuseError: it is none, or not a new one.
    """
    if isinstance(found, Actor):
        if "_cell" in vars(found):
            raise MisuseError(f"{found} has been started before; make a new one")
        return
    if isinstance(found, type):
        name = found.__name__
        text = f"{name} is a class, not an actor of it: give {name}(…)"
    elif callable(found):
        text = f"{found!r} is a function, not an actor: give what it returns"
    else:
        text = f"{found!r} is no actor: derive its class from runtime.Actor"
    raise MisuseError(text)


def start(cell: Cell) -> Reply | None:
    """Start an incarnation.

    A start that fails is an end: the cell is `down` and its supervisor is told
    `ChildEnded`, besides what the caller learns.

    Returns:
        None if the actor runs already; a reply to await if its `on_start` waits.

    Raises:
        Exception: what the actor's constructor or its plain `on_start` raised.
    """
    if cell.make is None:
        raise MisuseError(f"{cell.name} was started without a recipe to restart it")
    try:
        actor = cell.make()
        refuse_other(actor)
    except BaseException as raised:  # noqa: BLE001  `judge` decides
        _refuse_start(cell, cell.kernel.judge(raised))
    return start_actor(cell, actor)


def start_actor(cell: Cell, actor: Actor) -> Reply | None:
    """Start an incarnation with this actor; see `start`."""
    cell.state = "starting"
    cell.ending = None
    cell.actor = actor
    try:
        actor._cell = cell  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        if cell.actor_class is not type(actor):
            cell.actor_class = type(actor)
            cell.mailbox.adopt(cell.bounds or type(actor).mailbox)
        result: object = actor.on_start()
    except BaseException as raised:  # noqa: BLE001  `judge` decides
        _refuse_start(cell, cell.kernel.judge(raised))
    if type(result) is CoroutineType:
        reply = Reply()
        open_scope(cell)
        start_task(cell, _finish_start, cell, actor, result, reply)
        return reply
    _run(cell)
    return None


def open_scope(cell: Cell) -> None:
    """Make what cancels an actor's code that is to be awaited.

    Already before its task has begun: whoever kills the actor then must find it. Its
    plain part may have done so.
    """
    scope = cell.scope = trio.CancelScope()
    if cell.is_killed:
        cut_short(cell, scope, KILLED)


async def guard(
    cell: Cell, coroutine: Awaitable[object], *, has_deadline: bool = False
) -> tuple[Exception | None, object] | None:
    """Await an actor's own code, in the scope that is cancelled to end the actor.

    The one place in which handlers and hooks are awaited.

    Args:
        cell: the actor's place; it has a scope unless nobody could have cancelled yet.
        has_deadline: whether the deadline of the actor's class holds for it.

    Returns:
        What it raised, or else gave, `CANCELLED` if it was and did not raise; None if
        its actor has gone on without it.
    """
    kernel = cell.kernel
    scope = cell.scope = cell.scope or trio.CancelScope()
    seconds = cell.actor_class.deadline if has_deadline else None
    timer = None
    if seconds is not None:
        late = partial(overrun, cell, scope, seconds)
        timer = kernel.timers.call_at(kernel.now() + seconds, late)
    error: Exception | None = None
    result: object = CANCELLED
    try:
        with scope:
            result = await coroutine
    except BaseException as raised:  # noqa: BLE001  `judge` decides
        _give_up_nurseries()
        error = kernel.judge(raised, is_awaited=True)
    finally:
        if timer is not None:
            timer.cancel()
    if cell.scope is not scope:
        return None
    cell.scope = None
    try:
        return error, result
    finally:  # its traceback holds this frame
        del error


def _give_up_nurseries() -> None:
    """Cancel what the present task has left open: trio would end the system for it."""
    task = trio.lowlevel.current_task()
    for nursery in task.child_nurseries:
        nursery.cancel_scope.cancel()
    task._child_nurseries.clear()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


@trio.lowlevel.enable_ki_protection
async def _finish_start(cell: Cell, actor: Actor, coroutine: Any, reply: Reply) -> None:
    ended = await guard(cell, coroutine)
    if ended is None:  # left behind; its supervisor knows
        reply.offer_error(StartError(f"{cell.name} came up too late"))
        return
    error = ended[0]
    del ended
    if cell.is_killed:
        error = StartError(f"{cell.name} was killed while it was starting")
    if error is None:
        _run(cell)
        reply.offer(None)
        return
    try:
        if actor.has_children:
            await _end_children(cell, actor)
        _start_failed(cell, error)
        reply.offer_error(error)
    finally:  # since Python 3.12 its traceback holds this frame
        del error, reply


def _refuse_start(cell: Cell, error: Exception) -> NoReturn:
    try:
        _start_failed(cell, error)
        raise error from error.__cause__
    finally:  # its traceback holds this frame
        del error


def _start_failed(cell: Cell, error: Exception) -> None:
    has_declined = isinstance(error, DeclineStart)
    if cell.parent is not None and not has_declined:
        report_failure(cell, error)
    exit_ = graver(cell.ending, Exit("normal" if has_declined else "failed", error))
    generation = cell.generation
    _fold_up(cell)
    cell.last_exit = exit_
    if cell.is_final:
        bury(cell, exit_)
    _answer_stops(cell)
    _tell_parent(cell, generation, exit_)


def _tell_parent(cell: Cell, generation: int, exit_: Exit) -> None:
    parent = cell.parent
    if parent is not None:
        ended = ChildEnded(cell.name, generation, exit_)
        parent.post_system(Notice(ended, parent.generation))


def _fold_up(cell: Cell) -> None:
    """Take away what belonged to the present incarnation only."""
    cell.generation += 1
    cell.actor = cell.scope = cell.ending = None
    cell.state = "down"
    if cell.timers is not None:
        cancel_timers(cell.timers, surviving=False)
    deferred, cell.deferred = cell.deferred or (), None
    for reply in deferred:
        text = f"{cell.name} ended before it answered"
        reply.offer_error(pykka.ActorDeadError(text))
    system = cell.mailbox.system
    if system:
        # Why: a stop that came too late must not end the next incarnation, and
        # what became of this one's children is no news to it.
        kept = [each for each in system if type(each) is Notice]
        system.clear()
        system.extend(each for each in kept if each.generation is None)


def _run(cell: Cell) -> None:
    cell.state = "running"
    cell.started_at = cell.kernel.now()
    mailbox = cell.mailbox
    cell.scheduled = cell.is_queued
    if mailbox.count or mailbox.system:
        mailbox.unstash()
        cell.enqueue()


def end(cell: Cell, exit_: Exit) -> None:
    """End the present incarnation; its supervisor will be told."""
    actor = cell.actor
    if actor is None:
        return
    cell.state = "passivating" if exit_.how == "passivated" else "stopping"
    cell.scheduled = True
    cell.current = EMPTY
    cell.ending = exit_ if cell.ending is None else graver(cell.ending, exit_)
    waiting: Any = None
    if not actor.has_children:
        waiting = _call_hook(cell, actor)
        if waiting is None:
            _ended(cell)
            return
    if waiting is None:  # children are to be ended, also by an actor that is killed
        cell.scope = trio.CancelScope()
    else:
        open_scope(cell)
    start_task(cell, _end_slowly, cell, actor, waiting)


@trio.lowlevel.enable_ki_protection
async def _end_slowly(cell: Cell, actor: Actor, waiting: Any) -> None:
    """End the children, then let the hook come to its end, then tell."""
    if actor.has_children:
        if not await _end_children(cell, actor):
            return
        waiting = _call_hook(cell, actor)
        if waiting is not None:
            open_scope(cell)
    if waiting is not None:
        ended = await guard(cell, waiting, has_deadline=True)
        if ended is None:
            return
        if ended[0] is not None:
            _hook_failed(cell, ended[0])
        del ended  # since Python 3.12 its error's traceback holds this frame
    _ended(cell)


async def _end_children(cell: Cell, actor: Actor) -> bool:
    """End an actor's children, without mercy as soon as it is killed itself.

    Returns:
        False if the actor has ended without this.
    """

    async def see_to(*, brutally: bool) -> None:
        await actor.end_children(brutally=brutally)

    while True:
        brutally = cell.is_killed
        ended = await guard(cell, see_to(brutally=brutally))
        if ended is None:
            return False
        if ended[0] is not None:
            report_failure(cell, ended[0])
        del ended  # since Python 3.12 its error's traceback holds this frame
        if brutally or not cell.is_killed:
            return True


def _call_hook(cell: Cell, actor: Actor) -> Any:
    """Call `on_stop` or `on_failure`; give what is to be awaited, None if nothing."""
    exit_ = cell.ending
    if exit_ is None or exit_.how == "killed":
        return None
    result: Any = None
    try:
        if exit_.error is not None:
            error = exit_.error
            report_failure(cell, error)
            result = actor.on_failure(type(error), error, error.__traceback__)
        else:
            result = actor.on_stop()
    except BaseException as raised:  # noqa: BLE001  `judge` decides
        _hook_failed(cell, cell.kernel.judge(raised))  # the end itself must go on
    if type(result) is CoroutineType:
        return result  # pyright: ignore[reportUnknownVariableType]
    return None


def _hook_failed(cell: Cell, error: Exception) -> None:
    """A hook that raises makes a failure of an orderly end, but not of sleep.

    Why: to be started again, who was idle has nothing to do.
    """
    report_failure(cell, error)
    cell.failed += 1
    if cell.state != "passivating":
        cell.ending = graver(cell.ending, Exit("failed", error))


def failed(error: Exception) -> Exit:
    """How an actor ended whose code raised this."""
    return KILLED if isinstance(error, ProgramEndError) else Exit("failed", error)


def _ended(cell: Cell) -> None:
    """Note that the incarnation is over, and tell those who wait for it."""
    exit_, generation = cell.ending or KILLED, cell.generation
    _fold_up(cell)
    cell.last_exit = exit_
    parent = cell.parent
    if parent is None:
        bury(cell, exit_)
        return
    if cell.is_final or parent.state == "dead":
        bury(cell, exit_)
    else:
        _answer_stops(cell)
    _tell_parent(cell, generation, exit_)


def bury(cell: Cell, exit_: Exit) -> None:
    """End an actor for good: what waits becomes dead letters, watchers are told."""
    if cell.state == "dead":
        return
    cell.state = "dead"
    cell.mailbox.close()
    cell.last_exit = exit_
    kernel = cell.kernel
    if kernel.names.get(cell.name) is cell:
        del kernel.names[cell.name]
    kernel.count_ended(cell.actor_class.__name__, cell.handled)
    if cell.timers is not None:
        cancel_timers(cell.timers, surviving=True)
    if cell.mailbox.count or cell.mailbox.senders:
        _give_up_all(cell, exit_)
    if cell.stop_replies:
        _answer_stops(cell)
    watchers, cell.watchers = cell.watchers or (), None
    for watcher in watchers:
        watcher.post_system(Terminated(cell.ref, exit_))
    cell.let_go()


def _answer_stops(cell: Cell) -> None:
    replies, cell.stop_replies = cell.stop_replies or (), None
    for reply in replies:
        reply.offer(value=True)


def _give_up_all(cell: Cell, exit_: Exit) -> None:
    reason: Reason = "stopped"
    if exit_.how in {"failed", "killed"}:
        reason = "failed" if exit_.how == "failed" else "killed"
    cell.mailbox.unstash()
    while (item := cell.mailbox.get()) is not EMPTY:
        if type(item) is not Stop:
            cell.give_up(item, reason)
        elif item.ended is not None:
            cell.tell_end(item.ended)
    text = f"{cell.name} ended before it had room"
    cell.mailbox.turn_away(partial(pykka.ActorDeadError, text))


def cancel_timers(timers: set[Timer], *, surviving: bool) -> None:
    """Void an actor's timers; those that survive a restart only when asked."""
    for timer in tuple(timers):
        if surviving or not timer.survives:
            timer.cancel()


def overrun(cell: Cell, scope: trio.CancelScope, seconds: float) -> None:
    """Cancel a handler or hook that ran past its deadline."""
    if cell.scope is not scope or cell.is_killed:
        return
    what = "handler" if cell.state == "running" else "hook"
    cell.kernel.watchdog[cell.actor_class.__name__, "cancelled"] += 1
    cell.kernel.report(
        f"{what} past its deadline, cancelled",
        {"actor": cell.name, "deadline": seconds},
    )
    text = f"{cell.name} ran longer than {seconds} s"
    error = DeadlineError(text, actor=cell.name)
    # To be started again, who was idle has nothing to do; as in `_hook_failed`.
    is_asleep = cell.state == "passivating"
    cut_short(cell, scope, PASSIVATED if is_asleep else Exit("failed", error))
    cell.kernel.timers.call_in(VERIFY_AFTER, partial(_verify, cell, scope))


def cut_short(cell: Cell, scope: trio.CancelScope, exit_: Exit) -> None:
    """Cancel what an actor is doing, to end it; what stays is left behind."""
    cell.ending = graver(cell.ending, exit_)
    scope.cancel()
    cell.kernel.timers.call_in(PATIENCE, partial(_abandon, cell, scope))


def _abandon(cell: Cell, scope: trio.CancelScope) -> None:
    """Leave behind what does not end; its actor ends without it."""
    actor = cell.actor
    if cell.scope is not scope or actor is None:
        return
    cell.kernel.watchdog[cell.actor_class.__name__, "abandoned"] += 1
    cell.kernel.report("handler left behind", {"actor": cell.name})
    actor._is_left_behind = True  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    if cell.current is not EMPTY:
        cell.give_up(cell.current, "killed" if cell.is_killed else "failed")
        cell.current = EMPTY
    if actor.has_children:
        end(cell, KILLED)
        return
    # Why not `end`: its hooks would run beside a handler that is still running.
    _ended(cell)


def _verify(cell: Cell, scope: trio.CancelScope) -> None:
    """Report whether an actor is rid of a handler that was cancelled."""
    is_rid = cell.state == "running" and cell.scope is not scope
    recovered = cell.is_dead or is_rid
    action = "recovered" if recovered else "not_recovered"
    cell.kernel.watchdog[cell.actor_class.__name__, action] += 1
    if not recovered:
        cell.kernel.report("actor did not recover", {"actor": cell.name})


def report_failure(cell: Cell, error: Exception) -> None:
    """Tell the operator that an actor failed, with the exception."""
    cell.kernel.report("actor failed", {"actor": cell.name, "error": error})
