"""What a node shows in chats whose connector another node has, and the other way.

Of several nodes, one works on a chat, and one has the connector and sends. Messages and
answers reach each other as rows. All else may get lost and goes as a hint: words of an
answer that is being written, typing, reactions, that a message is settled, deleted, or
that a question for approval stands. `AwayConnector` is in the connector's place at the
first node; `take_hint` hands on at the second one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar, get_args

import msgspec

from actors import names
from actors.approvals.board import QuestionAsked, QuestionOver
from actors.messages.deliveries import Draft
from actors.messages.inbound import Inbound
from actors.protocol import (
    AsideShown,
    Deliver,
    Delivered,
    DrainOutbox,
    MessageSettled,
    ShowDraft,
    ShowReaction,
    ShowTyping,
    StopAccepting,
    StopDelegated,
    Undelivered,
)
from actors.services import Duties, Services
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import Keyed
from runtime.actor.ref import ActorRef
from runtime.telemetry.logs import EventLog

LOG = EventLog("nodes")

Hint = (
    ShowDraft
    | ShowTyping
    | ShowReaction
    | MessageSettled
    | StopDelegated
    | AsideShown
    | QuestionAsked
    | QuestionOver
)
KINDS: tuple[type[Hint], ...] = get_args(Hint)
DECODERS = {kind.__name__: msgspec.json.Decoder(kind) for kind in KINDS}

# Chosen: 4 bytes each, with a long address beside them, are less than a hint may have.
MOST_CHARS = 1_000
"""Characters of an answer in one hint."""


def encode_hint(message: object) -> tuple[str, bytes]:
    """Give the kind of a hint, and its JSON, without what people wrote."""
    match message:
        case MessageSettled(inbound=inbound, reason=reason):
            message = MessageSettled(bare(inbound), reason)
        case StopDelegated(by=by):
            message = msgspec.structs.replace(message, by=bare(by))
        case _:
            pass
    return type(message).__name__, msgspec.json.encode(message)


class AwayConnector(Actor):
    """Stands for a connector that another node has, and for its reactions.

    Takes: all that a connector takes from those who work on its chats.
    Sends: nothing here; tells the other node what is to be shown. Deliveries are rows,
        of which that node hears by the commit.
    Keeps: nothing. Fails: never by a message. Ends: when the connector comes here.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(
        capacity=10_000, overflow="drop_oldest"
    )

    def __init__(self, name: str, duties: Duties) -> None:
        super().__init__()
        self._name = name
        self._duties = duties

    def on_receive(self, message: object) -> None:
        """Tell of what is to be shown; leave all else to the node that sends."""
        match message:
            case ShowDraft(draft=draft):
                for piece in pieces(draft):
                    self._duties.show(self._name, ShowDraft(piece))
            case Keyed(message=ShowReaction() as shown):
                self._duties.show(self._name, shown)
            case MessageSettled() | ShowTyping():
                self._duties.show(self._name, message)
            case Deliver() | DrainOutbox() | Delivered() | Undelivered():
                pass  # the other node reads the rows
            case StopAccepting():
                pass
            case _:
                super().on_receive(message)


def pieces(draft: Draft) -> Iterator[Draft]:
    """Give a piece of an answer in pieces that fit into a hint each."""
    for start in range(0, len(draft.text), MOST_CHARS):
        yield msgspec.structs.replace(
            draft,
            text=draft.text[start : start + MOST_CHARS],
            begins_at=draft.begins_at + start,
        )


def bare(inbound: Inbound) -> Inbound:
    """Leave out of a message all but its ids, and where it is from.

    The rest may be people's words, or too long for a hint.
    """
    return msgspec.structs.replace(
        inbound,
        sender_name="",
        text="",
        quoted=None,
        attachments=(),
        history=(),
        mentions=(),
        present=(),
        roles=(),
        platform_fields={},
    )


def take_hint(
    connector: str,
    kind: str,
    body: bytes,
    find: Callable[[str], ActorRef | None],
    services: Services,
) -> None:
    """Hand on what another node shows, if it concerns this one.

    Args:
        connector: whose chat it is in.
        kind: as of `encode_hint`; so is `body`.
        body: JSON.
        find: gives actors by name.
        services: what this node does, and the questions that are open here.
    """
    try:
        message = DECODERS[kind].decode(body)
    except (KeyError, msgspec.DecodeError) as error:
        LOG.warning("hint of another node not read", kind=kind, why=str(error))
        return
    duties, to, sent = services.duties, "", object()
    match message:
        case AsideShown() | QuestionAsked() | QuestionOver():
            note_question(message, services)
        case StopDelegated(by=by) if duties.has_chat(connector, by.address.chat):
            to, sent = names.ROUTER, message
        case StopDelegated():
            pass
        case _ if connector not in duties.accounts:
            pass
        case ShowReaction(address=address, message=name):
            key = f"{address.chat}/{name}"
            to, sent = names.acknowledgements(connector), Keyed(key, message)
        case _:
            to, sent = names.connector(connector), message
    if to and (found := find(to)) is not None:
        found.tell(sent)


def note_question(
    message: AsideShown | QuestionAsked | QuestionOver, services: Services
) -> None:
    """Take note of a question for approval, of this node or of another one."""
    match message:
        case AsideShown(delivery=delivery, at=at):
            services.board.note_shown(delivery, at)
        case QuestionAsked(approval=approval, question=question):
            place = approval.address
            if services.duties.has_chat(place.connector, place.chat):
                services.board.learn(approval, question)
        case QuestionOver(approval=approval):
            services.board.forget(approval)
