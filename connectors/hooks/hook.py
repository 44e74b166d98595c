"""The actor of one hook: whether it can be asked, and what came of asking it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec
import trio

from actors.hooks.book import AskHook, TellHook
from actors.hooks.health import HookHealth
from connectors.hooks.messages import (
    HOOK,
    Answered,
    HookEnded,
    HookError,
    HookRecord,
    HookStarted,
    LeftBehind,
    Told,
    Unanswered,
)
from connectors.hooks.pending import PendingQuestion, QuestionQueue, owner_of
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.store.rows import Commit, Record
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from actors.hooks.chain import Trouble
    from connectors.hooks.messages import State
    from connectors.hooks.metrics import HookFigures
    from runtime.clock import Clock
    from runtime.store.port import Store

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
        self._figures.show(self._settings.name, is_up=False)
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
                self._figures.count(self._settings.name, action)
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
                self._figures.told(name, "failed" if problem else "told")
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
        """Answer a question without asking.

        Raises:
            HookError: always.
        """
        self._unanswered(trouble, why)
        raise HookError(why, trouble)

    def _unanswered(
        self, trouble: Trouble, why: str, *, is_waited_for: bool = False
    ) -> None:
        """Count a question without a verdict.

        Args:
            trouble: why, in one word.
            why: the same, for people.
            is_waited_for: whether somebody waited for nothing.
        """
        self._health.failed(
            trouble, why, trio.current_time(), is_waited_for=is_waited_for
        )
        self._figures.count(self._settings.name, trouble)
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
        self._figures.told(self._settings.name, "missed")
        self._changed()

    # --- what is shown --------------------------------------------------------------

    def _enter(self, state: State, reason: str) -> None:
        self._state, self._reason = state, reason
        self._figures.show(self._settings.name, is_up=state == "up")
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
