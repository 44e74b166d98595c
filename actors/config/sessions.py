"""Settings of conversations: expiry, compaction, busy policies and stuck turns.

`actors/messages/busy_policies.py` explains the policies.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from actors.config.values import Count, Seconds
from actors.messages.busy_policies import BusyPolicy, BusySettings, Chosen, Overflow
from actors.messages.expiry import Expiry, ExpiryRule
from actors.messages.keys import SessionKey
from actors.messages.progress import ProgressLimits

MINUTE = 60.0


class SessionConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How a conversation behaves."""

    idle_after: Seconds = 900.0
    """Seconds without a message after which a conversation sleeps."""

    session_scope: Literal["chat", "sender"] = "chat"
    """In a group: one conversation for the chat, or one for each person in it. Memory
    follows, see `actors/memory/scopes.py`.
    """

    resume_within: Annotated[float, Meta(ge=0, le=31_536_000)] = 86_400.0
    """Seconds after its last answer for which a model that keeps the conversation
    itself continues it; later it gets the whole conversation again.
    """

    expiry: Expiry = "none"
    """When a conversation expires: never; at an hour of the day (`daily`); after a time
    without messages (`idle`); or whichever comes first (`both`).
    """

    reset_hour: Annotated[int, Meta(ge=0, le=23)] = 4
    """Hour of the daily reset, local time, for `daily`."""

    time_zone: str = "UTC"
    """Time zone of `reset_hour`: `UTC`, `Europe/Berlin`, …"""

    idle_minutes: Annotated[float, Meta(gt=0, le=525_600)] = 120.0
    """Minutes without a message, for `idle`."""

    close_sleeping: bool = False
    """Whether an expired conversation ends soon, even without a message; otherwise with
    its next message.
    """

    tell_reset: bool = True
    """Whether people are told with their next message that a conversation has
    expired.
    """

    flush_before_reset: bool = True
    """Whether a model extracts facts and a summary from a conversation before it ends;
    only with memory.
    """

    flush_timeout: Seconds = 45.0
    """Time limit of that in seconds; the conversation then ends all the same."""

    @property
    def rule(self) -> ExpiryRule:
        """Return when conversations expire."""
        return ExpiryRule(self.expiry, self.reset_hour, self.idle_minutes * MINUTE)


class CompactionConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Compaction of conversations that are too long for their model."""

    share: Annotated[float, Meta(gt=0, le=1)] = 0.75
    """Share of the context window that a request may take before earlier lines are
    summarised.
    """

    max_chars: Annotated[int, Meta(ge=1_000)] = 400_000
    """Most characters of earlier lines that are sent with a question."""

    keep_lines: Annotated[int, Meta(ge=0, le=1_000)] = 6
    """Newest lines that are kept verbatim."""

    cut_lines: Annotated[int, Meta(ge=1, le=1_000)] = 12
    """Newest lines that are kept if the summary fails."""

    cut_chars: Annotated[int, Meta(ge=20, le=100_000)] = 600
    """Length in characters to which each of these is shortened."""

    model: str = ""
    """Name of the summarising `[models.<name>]`; empty: the agent's `cheap` one or its
    own.
    """

    max_tokens: Count = 1_500
    """Longest summary in tokens."""

    timeout: Seconds = 90.0
    """Time limit in seconds, facts and summary together."""

    flush_after: Annotated[int, Meta(ge=0, le=100_000)] = 30
    """Lines after which facts are extracted from a conversation, in the background; 0:
    never. Only with memory.
    """


Wait = Annotated[float, Meta(ge=0, le=600)]
Injections = Annotated[int, Meta(ge=0, le=20)]


class BufferingConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What a conversation does with a message that arrives during a turn."""

    policy: BusyPolicy = "serial"
    """`serial` answers one message after the other; `followup` answers one person's
    waiting messages together; `interrupt` cancels the turn and starts again with the
    new message; `steer` injects it into the running tool loop.
    """

    note: bool = False
    """Whether a waiting person is told so; `serial` only."""

    debounce: Wait = 0.0
    """Seconds of silence after a message before it is answered, so that several quick
    ones are joined; 0: none. Files do not wait. Not for `serial`.
    """

    longest_debounce: Wait = 10.0
    """Longest such wait in seconds, however many messages follow."""

    overflow: Overflow = "new"
    """What to do when `limits.max_waiting` messages wait: refuse the new one (`new`);
    drop the oldest of the same person (`oldest`); shorten that to one line, and drop it
    only when all are shortened (`summarise`, where messages are answered together).
    """

    injections: Injections = 5
    """Most messages that `steer` injects into one turn."""


class BusyPolicyConfig(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A different policy for some agents, connectors or chats.

    The first matching table counts; keys that it does not set are as under
    `[buffering]`. In every pattern, `*` matches anything.
    """

    agent: str = "*"
    """Name of the agent."""

    connector: str = "*"
    """Name of the connector of the message."""

    chat: str = "*"
    """The platform's id of the chat."""

    policy: BusyPolicy | None = None
    note: bool | None = None
    debounce: Wait | None = None
    longest_debounce: Wait | None = None
    overflow: Overflow | None = None
    injections: Injections | None = None


class WatchdogConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """When a turn counts as quiet, long, stalled, or stuck."""

    quiet_after: Annotated[float, Meta(ge=0, le=86_400)] = 20.0
    """Seconds without progress after which other people of the chat are answered beside
    the turn; 0: never.
    """

    long_after: Annotated[float, Meta(ge=0, le=86_400)] = 120.0
    """Seconds after which a turn counts as `long-running`; 0: never."""

    stalled_after: Annotated[float, Meta(ge=0, le=86_400)] = 120.0
    """Seconds without progress after which a turn counts as `stalled`, with a warning;
    0: never.
    """

    stuck_after: Annotated[float, Meta(ge=0, le=86_400)] = 300.0
    """Seconds without progress after which it is `stuck`: it is cancelled, and people
    are told; 0: never.
    """

    @property
    def patience(self) -> ProgressLimits:
        """Return the limits for the rules."""
        return ProgressLimits(
            self.long_after, self.stalled_after, self.stuck_after, self.quiet_after
        )


OVERRIDES = BusyPolicyConfig.__struct_fields__[3:]


def buffering_of(
    usual: BufferingConfig,
    tables: Iterable[BusyPolicyConfig],
    key: SessionKey,
    most_chars: int,
    chosen: Chosen = "",
) -> BusySettings:
    """Return the busy settings of one conversation.

    Args:
        usual: the `[buffering]` table.
        tables: the `[[busy_policies]]` tables; the first match counts.
        most_chars: most characters that one turn answers together.
        chosen: the policy that people chose there; it takes precedence.
    """
    said = msgspec.structs.asdict(usual)
    for table in tables:
        if _fits(table, key):
            given = msgspec.structs.asdict(table)
            said |= {x: given[x] for x in OVERRIDES if given[x] is not None}
            break
    if chosen not in {"", "default"}:
        said["policy"] = chosen
    return _shared(BusySettings(most_chars=most_chars, **said))


@lru_cache(maxsize=64)
def _shared(buffering: BusySettings) -> BusySettings:
    """Return one shared object for equal settings, because conversations are many."""
    return buffering


def _fits(table: BusyPolicyConfig, key: SessionKey) -> bool:
    return (
        fnmatchcase(key.agent, table.agent)
        and fnmatchcase(key.connector, table.connector)
        and fnmatchcase(key.chat, table.chat)
    )
