"""Which hooks are asked at which points of a message's way, and what they are told.

`message_received`: after the message is stored, and its platform has been told so, and
before any agent hears it (the router). Only its chat waits. The result is stored with
the message before it goes on, so a hook that hangs or a process that dies loses
nothing, and no message is decided twice. Asked about is all that a model would read of
it: the text, then the quoted message, and earlier lines of a client; what was read in
its files later, by the turn that reads them. Of a message that is held back nothing is
kept. Not asked about `/stop`, delegated tasks and scheduled messages.

`message_heard`: when one agent is about to be asked (its session), by hooks of its
skills. A hook may answer the message itself; then no model is asked. Only that
conversation waits. Commands are not asked about.

`message_sending`: when an answer is complete, before any of it is carried out (the
turn). Asked about are its text for people and, one after the other, its other words:
see `PartKind`. What the hooks leave is stored, remembered, handed on and sent. An
answer that a hook might hold back shows no drafts and no tool progress. The runtime's
own sentences are not asked about.

`turn_finished`: hooks are told, not asked, once the turn is stored; at most once.
"""

from __future__ import annotations

import msgspec

from actors.hooks.chain import Event, HookPart, HooksOutcome, HookSpec, PartKind
from actors.messages.commands import Stop, parse_command
from actors.messages.inbound import Inbound
from runtime.actor.reply import Reply

LOST_AFTER = 10.0
"""Seconds after the timeouts of all its hooks at which a question counts as lost."""


class HookFile(msgspec.Struct, frozen=True):
    """A file that came with a message, without its content."""

    kind: str
    name: str
    media_type: str


class HookSubject(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook is told of a message beside its text; it cannot change any of it."""

    id: str
    """The message's id; the same if it is asked about again after a crash."""

    correlation_id: str
    """The same for all that a message causes; the log has it."""

    connector: str
    """Name in the settings of where it was written."""

    chat: str
    """The chat's id on that platform."""

    thread: str = ""
    """The thread in that chat; empty: none."""

    sender_id: str = ""
    """The writer's id on that platform."""

    sender_name: str = ""
    """What the platform calls the writer; anybody can choose a name."""

    caller: str = ""
    """Over HTTP: the name of the API key, or a digest of the address."""

    is_direct: bool = True
    """Whether it is a chat of two, not a group."""

    agent: str = ""
    """The agent that answers, or that an incoming message names; empty: none."""

    files: tuple[HookFile, ...] = ()
    """Files that came with it: kind, name and media type of each."""

    part: PartKind = ""
    """Which part of the message or answer the text is."""


class FinishedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook is told of a finished turn."""

    state: str
    """`replied`, `dropped`, `cancelled` or `dead`."""

    reason: str
    """Why it ended so; `ok` if all went well."""

    seconds: float
    """How long the turn took."""

    rounds: int
    """Calls of the model that ended with an answer or with calls of tools."""

    input_tokens: int
    """Tokens that the model read."""

    output_tokens: int
    """Tokens that it wrote."""

    cost: float
    """Dollars, by the price list; 0 if it has no price."""

    model: str
    """The provider's name of the model."""


class AskHooks(msgspec.Struct, frozen=True, kw_only=True):
    """To a new asker: ask these hooks."""

    key: str = ""
    event: Event
    hooks: tuple[HookSpec, ...]
    about: HookSubject
    text: str
    most: int
    """Most characters of a text that a hook makes."""

    parts: tuple[HookPart, ...] = ()
    """Asked about after the text, which may be blank then."""

    back: str = ""
    """Name of the actor that waits for `HooksAnswered`, unless `reply` is set."""

    reply: Reply | None = None
    """Gets the `HooksOutcome`; None: it is told to `back`."""


class HooksAnswered(msgspec.Struct, frozen=True):
    """To the asking actor: the result of asking the hooks."""

    key: str
    passed: HooksOutcome


class AskHook(msgspec.Struct, frozen=True, kw_only=True):
    """To one hook, asked. It answers with a `Verdict` or an error."""

    event: Event
    about: HookSubject
    text: str


class TellHook(msgspec.Struct, frozen=True, kw_only=True):
    """To one hook: a turn is finished."""

    about: HookSubject
    text: str
    """The answer's text."""

    ended: FinishedTurn


class HookBook(msgspec.Struct, frozen=True):
    """All hooks of the settings, in the order in which they are asked."""

    specs: tuple[HookSpec, ...] = ()

    def receiving(self, inbound: Inbound) -> tuple[HookSpec, ...]:
        """Choose the hooks that are asked about an incoming message."""
        if not self.specs or inbound.is_hooked or inbound.copy_of:
            return ()
        if isinstance(parse_command(inbound.text), Stop):
            return ()
        return self.reading(inbound)

    def reading(self, inbound: Inbound) -> tuple[HookSpec, ...]:
        """Choose the hooks that are asked about what a message brings for a model."""
        if not self.specs or inbound.chain.agents or inbound.occasion:
            return ()
        return self._of("message_received", inbound.address.connector)

    def hearing(self, inbound: Inbound, agent: str) -> tuple[HookSpec, ...]:
        """Choose the hooks that may answer a message in an agent's place."""
        if not self.specs or inbound.chain.agents or inbound.occasion:
            return ()
        return self._of("message_heard", inbound.address.connector, agent)

    def sending(self, connector: str, agent: str) -> tuple[HookSpec, ...]:
        """Choose the hooks that are asked about an agent's answer."""
        if not self.specs:
            return ()
        return self._of("message_sending", connector, agent)

    def finished(self, connector: str, agent: str) -> tuple[HookSpec, ...]:
        """Choose the hooks that are told of a finished turn."""
        if not self.specs:
            return ()
        return self._of("turn_finished", connector, agent)

    def unshown(self, inbound: Inbound, agent: str) -> Inbound:
        """Show no drafts of an answer that a hook may hold back."""
        if not self.sending(inbound.address.connector, agent):
            return inbound
        return msgspec.structs.replace(inbound, wants_drafts=False)

    def _of(
        self, event: Event, connector: str, agent: str = ""
    ) -> tuple[HookSpec, ...]:
        return tuple([x for x in self.specs if x.concerns(event, connector, agent)])


def about(inbound: Inbound, agent: str) -> HookSubject:
    """Describe a message to a hook.

    Args:
        agent: the agent that answers; empty: none yet.
    """
    address = inbound.address
    return HookSubject(
        id=inbound.id,
        correlation_id=inbound.correlation_id,
        connector=address.connector,
        chat=address.chat,
        thread=address.thread,
        sender_id=inbound.sender_id,
        sender_name=inbound.sender_name,
        caller=inbound.caller,
        is_direct=inbound.is_direct,
        agent=agent or inbound.agent,
        files=tuple(
            HookFile(x.kind, x.name, x.media_type) for x in inbound.attachments
        ),
    )


def patience(hooks: tuple[HookSpec, ...]) -> float:
    """Give the seconds after which these hooks will never answer; without any, 0."""
    return sum(each.timeout for each in hooks) + LOST_AFTER if hooks else 0.0
