"""The actor of one hook: whether it can be asked, and what came of asking it.

Also what its two actors say to each other, what is counted of it, and the questions on
their way to the hook's code. The runner is busy as long as its hook runs, so questions
do not reach it as messages; they wait in a bounded queue, and none longer than its
time.

ChatError
└── HookError        it gave no verdict
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec
import trio

from actors.errors import ChatError
from actors.hooks.book import AskHook, TellHook
from actors.hooks.chain import Action, HookCounts, HookHealth, Trouble, Verdict
from actors.metrics import SECONDS
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.reply import Reply
from runtime.fairness import FairQueue
from runtime.store.rows import Commit, Record
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from runtime.clock import Clock
    from runtime.store.port import Store
    from runtime.telemetry.metrics import Metrics


class HookError(ChatError):
    """A hook gave no verdict."""

    def __init__(self, text: str, trouble: Trouble) -> None:
        super().__init__(text)
        self.trouble: Trouble = trouble


State = Literal["starting", "up", "down", "paused"]


class HookStarted(msgspec.Struct, frozen=True):
    """To the hook: its code runs."""


class HookEnded(msgspec.Struct, frozen=True):
    """To the hook: its code does not run any more; it is started again."""

    reason: str


class Answered(msgspec.Struct, frozen=True):
    """To the hook: it gave a verdict."""

    action: Action


class Unanswered(msgspec.Struct, frozen=True):
    """To the hook: it gave none."""

    trouble: Trouble
    why: str


class LeftBehind(msgspec.Struct, frozen=True):
    """To the hook: its code ended with work in hand."""

    why: str
    questions: int
    notices: int


class Told(msgspec.Struct, frozen=True):
    """To the hook: it was told that a turn is finished, or failed over it."""

    problem: str = ""


class HookRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What people see of a hook: a row of kind `hook`, and its state."""

    name: str
    state: State
    reason: str
    """Why it is not up; empty if it is."""

    counts: HookCounts
    """Since its process began."""

    last_error: str
    last_error_at: float
    """Unix seconds; 0: there was none."""

    started_at: float
    """Unix seconds at which its process began."""

    at: float
    """Unix seconds at which this was written."""


HOOK = "hook"
"""The kind of those rows."""


WAITING_PER_CALL = 100
"""Questions that wait for each one that may run at once."""

MOST_TOLD = 1_000
"""Finished turns that wait until a hook is told of them."""


class PendingQuestion:
    """One question, and who waits for its answer.

    Args:
        due: seconds on trio's clock by which it must be answered.
    """

    __slots__ = ("asked", "due", "outcome", "reply")

    def __init__(self, asked: AskHook, reply: Reply, due: float) -> None:
        self.asked = asked
        self.due = due
        self.reply = reply
        self.outcome: Verdict | HookError | None = None

    def end(self, outcome: Verdict | HookError) -> None:
        """Answer; only the first time counts."""
        if self.outcome is not None:
            return
        self.outcome = outcome
        if isinstance(outcome, HookError):
            self.reply.offer_error(outcome)
        else:
            self.reply.offer(outcome)


class QuestionQueue(FairQueue[PendingQuestion]):
    """Questions that wait or run; the people whose messages they are about take turns.

    Args:
        most: how many may run at once.
    """

    def __init__(self, most: int) -> None:
        super().__init__(
            most, most * WAITING_PER_CALL, lambda pending: owner_of(pending.asked)
        )
        self._to_tell, self._told = trio.open_memory_channel[TellHook](MOST_TOLD)
        self.is_open = False
        """Whether there is somebody who takes them."""

    def tell(self, told: TellHook) -> bool:
        """Have a finished turn told; False if too many wait for that."""
        if not self.is_open:
            return False
        try:
            self._to_tell.send_nowait(told)
        except trio.WouldBlock:
            return False
        return True

    async def take_told(self) -> TellHook:
        """Wait for a finished turn to tell."""
        return await self._told.receive()

    def close(self, reason: str) -> tuple[int, int]:
        """Tell those whose questions run that no answer will come; others wait on.

        Returns:
            How many questions that were, and how many finished turns nobody is told.
        """
        self.is_open = False
        running = self.abandon()
        for pending in running:
            pending.end(HookError(reason, "down"))
        missed = 0
        with contextlib.suppress(trio.WouldBlock):
            while True:
                self._told.receive_nowait()
                missed += 1
        return len(running), missed

    def fail_all(self, reason: str) -> None:
        """Tell all who wait that there is nobody to answer."""
        self.close(reason)
        for pending in self.waiting:
            self.withdraw(pending)
            pending.end(HookError(reason, "down"))


def owner_of(asked: AskHook) -> str:
    """Name whose share of the places a question takes: see `messages.keys.owner_of`."""
    about = asked.about
    return f"{about.connector}/{about.caller or about.sender_id}"


LOG = EventLog("hooks")

# Chosen: what `callboard hooks list` shows is this old at most; nothing is written
# while nothing happens.
WRITE_PACE = 2.0


class Settings(msgspec.Struct, frozen=True):
    """What a hook's actors must know of it."""

    name: str
    timeout: float
    """Seconds one question may take."""


class Expired(msgspec.Struct, frozen=True):
    """A note to itself: the time of a question is over."""

    pending: PendingQuestion


class WriteDue(msgspec.Struct, frozen=True):
    """A note to itself: write down how it is doing."""


class Hook(Actor):
    """One hook, over all runs of its code.

    Takes: `AskHook`, asked; `TellHook`; from its runner `HookStarted`, `HookEnded`,
        `Answered`, `Unanswered`, `Told`, `LeftBehind`.
    Sends: questions to its runner, by the link that both hold.
    Keeps: how it is doing, written down for `callboard hooks list`.
    Fails: never by these messages.
    Ends: with the system.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=10_000)

    def __init__(
        self,
        settings: Settings,
        link: QuestionQueue,
        figures: HookFigures,
        store: Store,
        clock: Clock,
    ) -> None:
        super().__init__()
        self._settings = settings
        self._link = link
        self._figures = figures
        self._store = store
        self._clock = clock
        self._health = HookHealth()
        self._state: State = "starting"
        self._reason = "it is being started"
        self._last_error_at = 0.0
        self._started_at = clock.wall()
        self._is_to_write = False

    def on_start(self) -> None:
        """Show that it cannot be asked yet."""
        self._figures.up.set(0, self._settings.name)
        self._changed()

    def on_stop(self) -> None:
        """Let nobody wait."""
        self._link.fail_all("it has been stopped")
        self._enter("down", "Callboard was stopped")
        self._write()

    def on_receive(self, message: object) -> object:
        """Pass a question on, or note what came of one."""
        match message:
            case AskHook():
                self._ask(message)
            case TellHook():
                self._tell(message)
            case Answered(action=action):
                self._health.answered(action)
                self._figures.questions.add(1, self._settings.name, action)
                self._changed()
            case Unanswered(trouble=trouble, why=why):
                # It was put to the hook: also one that was too busy has had its try.
                self._unanswered(trouble, why, is_waited_for=True)
            case Expired(pending=pending):
                self._expire(pending)
            case WriteDue():
                self._is_to_write = False
                self._write()
            case _:
                return self._on_runner(message)
        return None

    def _on_runner(self, message: object) -> object:
        name = self._settings.name
        match message:
            case HookStarted():
                self._health.started()
                self._enter("up", "")
            case LeftBehind():
                for _ in range(message.questions):
                    self._unanswered("down", message.why)
                for _ in range(message.notices):
                    self._missed()
            case HookEnded(reason=reason):
                LOG.warning("hook ended; it is started again", hook=name, why=reason)
                self._failed(reason)
                self._enter("down", reason)
            case Told(problem=problem):
                self._health.counts.told += 1
                self._figures.told.add(1, name, "failed" if problem else "told")
                if problem:
                    self._failed(problem)
                self._changed()
            case _:
                return super().on_receive(message)
        return None

    def _ask(self, asked: AskHook) -> None:
        now = trio.current_time()
        if not self._link.may_add(owner_of(asked)):
            self._refuse("busy", "too many questions wait for it")
        if not self._health.may_ask(now):
            times = self._health.failures
            self._refuse("paused", f"it failed {times} times in a row; left alone")
        reply = self.defer_reply()
        if reply is not None:
            # Why also while it is being started: words that come in right after a
            # start are to be asked about, too.
            pending = PendingQuestion(asked, reply, now + self._settings.timeout)
            self._link.add(pending)
            self.after(self._settings.timeout, Expired(pending))

    def _expire(self, pending: PendingQuestion) -> None:
        """Give up a question that nobody has begun with."""
        if not self._link.withdraw(pending):
            return
        trouble: Trouble = "busy" if self._link.is_open else "down"
        why = "too many questions came before it"
        if trouble == "down":
            why = f"it does not run: {self._reason}"
        pending.end(HookError(why, trouble))
        self._unanswered(trouble, why, is_waited_for=True)

    def _refuse(self, trouble: Trouble, why: str) -> None:
        """Answer a question without asking."""
        self._unanswered(trouble, why)
        raise HookError(why, trouble)

    def _unanswered(
        self, trouble: Trouble, why: str, *, is_waited_for: bool = False
    ) -> None:
        """Count a question without a verdict.

        Args:
            is_waited_for: whether somebody waited for nothing.
        """
        self._health.failed(
            trouble, why, trio.current_time(), is_waited_for=is_waited_for
        )
        self._figures.questions.add(1, self._settings.name, trouble)
        if trouble != "paused":
            self._last_error_at = self._clock.wall()
        self._changed()

    def _failed(self, why: str) -> None:
        """Note what went wrong beside a question."""
        self._health.last_error = why
        self._last_error_at = self._clock.wall()

    def _tell(self, told: TellHook) -> None:
        if not self._link.tell(told):
            self._missed()

    def _missed(self) -> None:
        self._health.counts.missed += 1
        self._figures.told.add(1, self._settings.name, "missed")
        self._changed()

    # --- what is shown --------------------------------------------------------------

    def _enter(self, state: State, reason: str) -> None:
        self._state, self._reason = state, reason
        self._figures.up.set(float(state == "up"), self._settings.name)
        self._changed()

    def _changed(self) -> None:
        if not self._is_to_write:
            self._is_to_write = True
            self.after(WRITE_PACE, WriteDue())

    def _write(self) -> None:
        health, now = self._health, self._clock.wall()
        state, reason = self._state, self._reason
        if state == "up" and health.is_failing:
            state, reason = "paused", f"it failed {health.failures} times in a row"
        row = HookRecord(
            name=self._settings.name,
            state=state,
            reason=reason,
            counts=health.counts,
            last_error=health.last_error,
            last_error_at=self._last_error_at,
            started_at=self._started_at,
            at=now,
        )
        record = Record(
            kind=HOOK,
            id=self._settings.name,
            owner="",
            part=0,
            body=msgspec.json.encode(row),
        )
        commit = Commit(at=now, records=(record,), may_wait=True)
        self._store.submit(commit, _note_failure)


def _note_failure(outcome: object) -> None:
    if isinstance(outcome, Exception):
        LOG.warning("state of a hook not written", why=str(outcome))


class HookFigures:
    """The counters of all hooks."""

    def __init__(self, metrics: Metrics) -> None:
        self.questions = metrics.counter(
            "callboard_hook_questions",
            "What hooks said, by hook; or why one gave no verdict.",
            ("hook", "outcome"),
        )
        self.told = metrics.counter(
            "callboard_hook_notices",
            "Finished turns that hooks were told of, or were not.",
            ("hook", "outcome"),
        )
        self.seconds = metrics.histogram(
            "callboard_hook_seconds",
            "Seconds until a hook gave its verdict.",
            ("hook",),
            SECONDS,
        )
        self.up = metrics.gauge(
            "callboard_hook_up", "1 while a hook can be asked.", ("hook",)
        )
