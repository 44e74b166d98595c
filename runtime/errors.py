"""The kernel's error tree; every name says whose fault it was.

    KernelError
    ├── MisuseError             the caller broke a rule of the kernel's API
    ├── MailboxFullError        the other side has no room; carries the message back
    ├── InterruptedActorError   the handler that owed this answer was interrupted
    ├── DeadlineError           a handler ran past its deadline and was cancelled
    ├── DeclineStart            raised in `on_start`: this child does not want to run
    ├── StartError              a child failed, or took too long, while starting
    ├── ProgramEndError         a handler or hook ends the program (`SystemExit`)
    ├── RestartLimitError       a supervisor's children failed too often (OTP: shutdown)
    ├── SettingsError           a settings file is wrong; carries file, line, column
    │   └── SettingsListError       several things are; carries each
    └── StoreError
        ├── DuplicateError          this dedup key has been accepted before
        │   └── DeliveryKnownError      a delivery has this id already
        ├── SequenceConflictError   another writer appended to the stream first
        ├── StoreUnavailableError   disk full, I/O error: try again when it ended
        │   └── FencedError             another process has taken the database over
        ├── StoreTooNewError        the database was written by a newer release
        ├── StoreRefusedError       not our database, or an engine that is not safe
        └── CorruptError            the database is damaged

`pykka.ActorDeadError` and `pykka.Timeout` keep pykka's names and meaning.
"""

from __future__ import annotations

from math import inf


class KernelError(Exception):
    """Base of everything the kernel raises itself."""


class MisuseError(KernelError):
    """The caller broke a rule of the kernel's API; the text says which."""


def why_no_time(given: object, least: float = -inf) -> str:
    """Say what is wrong with seconds that a caller gives: the kernel's one check.

    Args:
        given: anything; infinite is right, and means for ever.
        least: seconds below which it is wrong.

    Returns:
        The end of a sentence, as "not nan"; empty when nothing is wrong.
    """
    try:
        if isinstance(given, int | float) and float(given) >= least:
            return ""
    except OverflowError:  # it may have more digits than Python writes
        return "not an integer too large for a clock"
    return f"not {given!r}"


def text_of(error: BaseException) -> str:
    """Give an error's text; the name of its class where a stranger's text raises."""
    try:
        return str(error)
    except BaseException:  # noqa: BLE001  a stranger's method
        return type(error).__name__


class MailboxFullError(KernelError):
    """The recipient's mailbox has no room.

    Args:
        recipient: name of the actor that is full.
        message: the message, given back so that the sender can keep it.
    """

    def __init__(self, recipient: str, message: object) -> None:
        super().__init__(f"the mailbox of {recipient} is full; try again later")
        self.recipient = recipient
        self.message = message


class InterruptedActorError(KernelError):
    """The handler that owed this answer was interrupted before it could answer."""


class ProgramEndError(KernelError):
    """A handler or hook raised `SystemExit` or `KeyboardInterrupt`; it is the cause."""


class DeadlineError(KernelError):
    """A handler ran past its deadline and was cancelled by the watchdog.

    Args:
        actor: name of the actor whose handler it was; an asker gets this error, too.
    """

    def __init__(self, text: str, *, actor: str) -> None:
        super().__init__(text)
        self.actor = actor


class DeclineStart(KernelError):  # noqa: N818  OTP's `ignore`: not a failure
    """Raised in `on_start` by an actor that does not want to run (OTP: ignore)."""


class StartError(KernelError):
    """A child failed, or took too long, while starting."""


class RestartLimitError(KernelError):
    """A supervisor's children needed more restarts than its intensity allows."""


class SettingsError(KernelError):
    """A settings file is wrong.

    Args:
        text: what is wrong, and why.
        file: path of the file, as the user gave it.
        line: line in that file, from 1; 0 if it concerns the whole file.
        column: column in that line, from 1; 0 if it concerns the whole line.
        hint: what to do about it; empty when the text says enough.
    """

    def __init__(
        self,
        text: str,
        *,
        file: str = "",
        line: int = 0,
        column: int = 0,
        hint: str = "",
    ) -> None:
        place = ":".join(str(part) for part in (file, line, column) if part)
        super().__init__(f"{place}: {text}" if place else text)
        self.text = text
        self.file = file
        self.line = line
        self.column = column
        self.hint = hint

    @property
    def problems(self) -> tuple[SettingsError, ...]:
        """Each thing that is wrong, in the order of the files; here, this one."""
        return (self,)


class SettingsListError(SettingsError):
    """Several things are wrong in the settings; its own fields are the first one's.

    Args:
        problems: each of them, at least one.
    """

    def __init__(self, problems: tuple[SettingsError, ...]) -> None:
        first = problems[0]
        super().__init__(
            "\n".join(str(problem) for problem in problems), hint=first.hint
        )
        self.text = first.text
        self.file = first.file
        self.line = first.line
        self.column = first.column
        self.each = problems

    @property
    def problems(self) -> tuple[SettingsError, ...]:
        """Each thing that is wrong, in the order they were found."""
        return self.each


class StoreError(KernelError):
    """The durable store refused or could not do what was asked."""


class DuplicateError(StoreError):
    """This dedup key has been accepted before; nothing was written."""


class DeliveryKnownError(DuplicateError):
    """The outbox has a delivery with this id; nothing was written.

    What the commit settles was not settled before.
    """


class SequenceConflictError(StoreError):
    """Another writer appended to the stream first; nothing was written."""


class StoreUnavailableError(StoreError):
    """The disk is full or failing; nothing was written, try again later."""


class FencedError(StoreUnavailableError):
    """Another process has taken the database over; this one must end."""


class StoreTooNewError(StoreError):
    """The database was written by a newer release of Callboard."""


class StoreRefusedError(StoreError):
    """The file is another program's, or the engine is one known to lose data."""


class CorruptError(StoreError):
    """The database is damaged; restore a backup."""
