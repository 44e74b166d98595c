"""What the domain lets people set about several messages at once, and stuck turns.

Beside `config.py`, which has the rest. What the policies mean stands in
`rules/busy_policies.py`.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta, Struct

from actors.config import Seconds
from actors.rules.busy_policies import Buffering, BusyPolicy, Chosen, Overflow
from actors.rules.stuck import Patience

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.rules.keys import SessionKey

Wait = Annotated[float, Meta(ge=0, le=600)]
Injections = Annotated[int, Meta(ge=0, le=20)]


class BufferingConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What a conversation does with a message that comes while it is busy."""

    policy: BusyPolicy = "serial"
    """`serial` answers one after the other; `followup` answers together what one person
    wrote meanwhile; `interrupt` begins anew with their newest words; `steer` puts those
    into the tool calls that are being made."""

    note: bool = False
    """Whether whoever has to wait is told that they come next; `serial` only."""

    debounce: Wait = 0.0
    """Seconds of silence after a message before it is answered, so that several quick
    ones become one; 0: none. Files wait for nothing. Not for `serial`."""

    longest_debounce: Wait = 10.0
    """Seconds that such a message waits at most, however many follow."""

    overflow: Overflow = "new"
    """What is done when `limits.max_waiting` messages wait: refuse the new one; drop
    the oldest of the same person (`oldest`); cut that to one line, and drop it only
    when as many are cut (`summarise`, where messages are answered together)."""

    injections: Injections = 5
    """Messages that are put into one turn at most, by `steer`."""


class BusyPolicyConfig(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Another policy for some agents, connectors or chats.

    The first table that fits counts; what it does not say is as under `[buffering]`.
    In every pattern, `*` stands for anything.
    """

    agent: str = "*"
    """Name of the agent."""

    connector: str = "*"
    """Name of the connector that the words come in by."""

    chat: str = "*"
    """The platform's id of the chat."""

    policy: BusyPolicy | None = None
    note: bool | None = None
    debounce: Wait | None = None
    longest_debounce: Wait | None = None
    overflow: Overflow | None = None
    injections: Injections | None = None


class WatchdogConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """When a turn counts as long, stalled, or stuck."""

    long_after: Annotated[float, Meta(ge=0, le=86_400)] = 120.0
    """Seconds after which a turn that goes on counts as `long-running`; 0: never."""

    stalled_after: Annotated[float, Meta(ge=0, le=86_400)] = 120.0
    """Seconds without a word of the model or an end of a tool after which a turn counts
    as `stalled`, which is warned of; 0: never."""

    stuck_after: Annotated[float, Meta(ge=0, le=86_400)] = 300.0
    """Seconds of the same after which it is `stuck`: it is cancelled, and people are
    told; 0: never."""

    recovered_within: Seconds = 10.0
    """Seconds after which a cancelled turn must be gone; else that is an error, and it
    is killed; after as long again its agent is restarted."""

    @property
    def patience(self) -> Patience:
        """Give the limits as the rules read them."""
        return Patience(self.long_after, self.stalled_after, self.stuck_after)


OVERRIDES = BusyPolicyConfig.__struct_fields__[3:]


def buffering_of(
    usual: BufferingConfig,
    tables: Iterable[BusyPolicyConfig],
    key: SessionKey,
    most_chars: int,
    chosen: Chosen = "",
) -> Buffering:
    """Choose how one conversation treats its messages.

    Args:
        usual: what `[buffering]` says.
        tables: what `[[busy_policies]]` say; the first that fits counts.
        key: the conversation.
        most_chars: characters that one turn answers together.
        chosen: the policy that people chose there; it comes before all of these.
    """
    said = msgspec.structs.asdict(usual)
    for table in tables:
        if _fits(table, key):
            given = msgspec.structs.asdict(table)
            said |= {x: given[x] for x in OVERRIDES if given[x] is not None}
            break
    if chosen not in {"", "default"}:
        said["policy"] = chosen
    return _shared(Buffering(most_chars=most_chars, **said))


@lru_cache(maxsize=64)
def _shared(buffering: Buffering) -> Buffering:
    """Give one object for all that are equal: there are very many conversations."""
    return buffering


def _fits(table: BusyPolicyConfig, key: SessionKey) -> bool:
    return (
        fnmatchcase(key.agent, table.agent)
        and fnmatchcase(key.connector, table.connector)
        and fnmatchcase(key.chat, table.chat)
    )
