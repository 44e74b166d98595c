"""Hooks as the domain sees them: whom to ask about what, and what is asked and said.

Where each stands on a message's way, and what that promises:

`message_received`: after the sender was let in and the message is stored, which is when
its platform is told so, and before anybody hears it (the router). Its chat waits
meanwhile, no other does. What comes of it, other words or none, is stored with the
message before it goes on; so a hook that hangs, or a process that dies, loses nothing,
and no message is decided about twice. Not asked: about `/stop`, so that nobody is kept
from it, and about what agents give each other or what was due.

`message_heard`: when one agent is about to be asked (its session), by hooks of its
skills for one. It may have the message for itself, and answer it; then no model is
asked. The conversation waits meanwhile, no other does. Commands are not asked about.

`message_sending`: when an answer is whole, has been through the sanitiser, and is about
to be stored (the session). What is stored, remembered and sent is what came of it. Of
an answer that a hook might hold back nothing is seen before: no draft, and no word of
its tools. The runtime's own sentences are not asked about.

`turn_finished`: told, not asked, once what it tells of is stored; at most once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.rules.commands import Stop, parse_command
from actors.rules.hooking import Event, HookSpec, Passed

if TYPE_CHECKING:
    from actors.messages import Inbound

LOST_AFTER = 10.0
"""Seconds after the time of all its hooks at which a question counts as lost."""


class File(msgspec.Struct, frozen=True):
    """A file that came with a message; not what is in it."""

    kind: str
    name: str
    media_type: str


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook is told of a message beside its words; nothing of it can change."""

    id: str
    """The message's own id; the same if it is asked again after a crash."""

    correlation_id: str
    connector: str
    chat: str
    thread: str = ""
    sender_id: str = ""
    sender_name: str = ""
    is_direct: bool = True
    agent: str = ""
    """Whose answer it is; or whom a message that came in names, if anybody."""

    files: tuple[File, ...] = ()


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook is told of a turn that is finished."""

    state: str
    """`replied`, `dropped`, `cancelled` or `dead`."""

    reason: str
    seconds: float
    rounds: int
    input_tokens: int
    output_tokens: int
    cost: float
    model: str


class AskHooks(msgspec.Struct, frozen=True, kw_only=True):
    """To a new asker: what do these hooks say?"""

    key: str
    event: Event
    hooks: tuple[HookSpec, ...]
    about: About
    text: str
    most: int
    """Characters of what a hook may make of it."""

    back: str
    """The name of the actor that waits for it."""


class HooksSaid(msgspec.Struct, frozen=True):
    """To whoever asked: what came of it."""

    key: str
    passed: Passed


class AskHook(msgspec.Struct, frozen=True, kw_only=True):
    """To one hook, asked: what do you say? Answered by a `Verdict`, or an error."""

    event: Event
    about: About
    text: str


class TellHook(msgspec.Struct, frozen=True, kw_only=True):
    """To one hook: a turn is finished."""

    about: About
    text: str
    """What was said."""

    ended: Ended


class HookBook(msgspec.Struct, frozen=True):
    """All hooks of the settings, in the order in which they are asked."""

    specs: tuple[HookSpec, ...] = ()

    def receiving(self, inbound: Inbound) -> tuple[HookSpec, ...]:
        """Choose who is asked about a message that came in."""
        if not self.specs or inbound.is_hooked or inbound.copy_of:
            return ()
        if inbound.chain.agents or inbound.occasion:
            return ()
        if isinstance(parse_command(inbound.text), Stop):
            return ()
        return self._of("message_received", inbound.address.connector)

    def hearing(self, inbound: Inbound, agent: str) -> tuple[HookSpec, ...]:
        """Choose who may have a message for itself that an agent hears."""
        if not self.specs or inbound.chain.agents or inbound.occasion:
            return ()
        return self._of("message_heard", inbound.address.connector, agent)

    def sending(self, connector: str, agent: str) -> tuple[HookSpec, ...]:
        """Choose who is asked about what an agent says somewhere."""
        return self._of("message_sending", connector, agent)

    def finished(self, connector: str, agent: str) -> tuple[HookSpec, ...]:
        """Choose who is told that a turn is finished."""
        return self._of("turn_finished", connector, agent)

    def unshown(self, inbound: Inbound, agent: str) -> Inbound:
        """Have no drafts shown of an answer that a hook may hold back."""
        if not self.sending(inbound.address.connector, agent):
            return inbound
        return msgspec.structs.replace(inbound, wants_drafts=False)

    def _of(
        self, event: Event, connector: str, agent: str = ""
    ) -> tuple[HookSpec, ...]:
        return tuple(x for x in self.specs if x.concerns(event, connector, agent))


def about(inbound: Inbound, agent: str) -> About:
    """Tell a hook of a message.

    Args:
        inbound: the message, or the one that is answered.
        agent: who answers; empty: nobody yet.
    """
    address = inbound.address
    return About(
        id=inbound.id,
        correlation_id=inbound.correlation_id,
        connector=address.connector,
        chat=address.chat,
        thread=address.thread,
        sender_id=inbound.sender_id,
        sender_name=inbound.sender_name,
        is_direct=inbound.is_direct,
        agent=agent or inbound.agent,
        files=tuple(File(x.kind, x.name, x.media_type) for x in inbound.attachments),
    )


def patience(hooks: tuple[HookSpec, ...]) -> float:
    """Give the seconds after which an answer of these hooks will never come."""
    return sum(each.timeout for each in hooks) + LOST_AFTER
