"""The terminals as one chat account; implements `actors.transport.Transport`.

Each terminal is a conversation of its own. An answer is stored first, then told to the
terminal if one is there, and else when it comes back: `connectors/chat/outbox.py` keeps
it. `callboard chat` opens a seat here if it runs the company itself. If another process
does, it connects by a Unix socket beside the database, which only the owner of that
process may open.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from collections import deque
from collections.abc import Generator
from pathlib import Path
from typing import Final

import msgspec
import pykka
import trio

from actors.commands.registry import COMMANDS
from actors.errors import (
    ChatError,
    DeliveryBusyError,
    DeliveryRefusedError,
    MessageRefusedError,
)
from actors.messages.deliveries import Abilities, Delivery, Draft, TakesFiles, Typing
from actors.messages.inbound import Address, Inbound
from actors.transport import Ingress
from connectors.chat.inbound import attachment
from connectors.chat.outbox import ClientOutbox, client_name, platform_id
from connectors.chat.platforms import TransportParts
from connectors.chat.server_transport import AwaitedMessages, MessageOver
from connectors.chat.terminal.client import (
    CHAT,
    READS_TERMINAL,
    FrameReader,
    FrameTooLongError,
    FromCompany,
    FromTerminal,
    ShownAgent,
    TerminalDraft,
    TerminalHas,
    TerminalHello,
    TerminalRefused,
    TerminalRoster,
    TerminalSay,
    TerminalSettled,
    TerminalTaken,
    TerminalTold,
    TerminalTyping,
    TerminalWelcome,
    send,
)
from connectors.chat.terminal.platform import TerminalConfig
from connectors.files.blobs import with_path
from runtime import __version__
from runtime.errors import KernelError, StoreError, StoreUnavailableError
from runtime.telemetry.logs import EventLog

LOG = EventLog("terminal")

FIRST_CHAT = "terminal"
"""The conversation of a terminal that is alone."""

SILENCE = "nothing to say"
OTHER_RELEASE = (
    "the company that runs is Callboard {theirs}, and this is {ours}: stop `callboard"
    " serve` and start it again"
)
NOT_YOURS = (
    "the company that runs is another user's: sudo -u '#{}' callboard chat, with the"
    " same settings"
)
FULL = "{most} terminals are connected already; leave one of them"

MOST_SEATS = 64
"""Terminals at the same time."""

MOST_KEPT = 1_000
"""Newest answers kept for each conversation."""

MOST_DRAFTS = 256
"""Pieces of answers that may wait for a slow terminal; the whole comes anyway."""

HELLO_WITHIN = 5.0
"""Seconds for the first frame of a terminal that is not let in."""

PAGE = 100
ROSTER_EVERY = 3.0
"""Seconds until a terminal learns who has come or gone, at the latest."""

NOT_TAKEN = (ChatError, KernelError, pykka.ActorDeadError, pykka.Timeout)
"""What taking a message in may raise; anything else is a bug."""


def socket_beside(database: Path) -> Path:
    """Say where a company with this database listens for terminals."""
    return database.with_name(database.name + ".socket")


class TerminalTransport:
    """All terminals of one company.

    Args:
        parts: what transports are made from; without `database`, no other process can
            connect.
    """

    presence = None
    """What was said stays as it was; drafts are frames of their own."""

    def __init__(
        self, name: str, config: TerminalConfig, parts: TransportParts
    ) -> None:
        self._name = name
        self._config = config
        self._parts = parts
        self.kept = ClientOutbox(parts.store, parts.clock, name, MOST_KEPT)
        self._seats: dict[TerminalSeat, None] = {}
        self._awaited = AwaitedMessages(name, self._settle)
        self._nursery: trio.Nursery | None = None
        self._listening = trio.Event()
        self._ingress: Ingress

    @property
    def abilities(self) -> Abilities:
        """Say that an answer is kept once under one id."""
        return Abilities(
            is_idempotent=True,
            is_operators=True,
            counts_answers=True,
            shows_typing=True,
            ends_typing=True,
            files=TakesFiles(),
        )

    @property
    def shown(self) -> dict[str, str]:
        """What people call each agent."""
        return {each.name: each.shown for each in self.roster().agents}

    async def listen(self, ingress: Ingress) -> None:
        """Serve terminals until cancelled.

        Raises:
            StoreError: what is kept cannot be read.
        """
        self._ingress = ingress
        await self.kept.load()
        try:
            with self._open_door() as door:
                async with trio.open_nursery() as self._nursery:
                    self._listening.set()
                    if door is None:
                        await trio.sleep_forever()
                    else:
                        await trio.serve_listeners(self._let_in, [door])
        finally:
            self._nursery, self._listening = None, trio.Event()

    async def wait_listening(self) -> None:
        """Wait until terminals are served."""
        await self._listening.wait()

    async def open_seat(self) -> trio.abc.Stream:
        """Connect a terminal of this process, as soon as terminals are served."""
        await self.wait_listening()
        assert self._nursery is not None  # noqa: S101  set before the event is
        here, there = map(trio.SocketStream, trio.socket.socketpair())
        self._nursery.start_soon(self.serve, there)
        return here

    async def deliver(self, delivery: Delivery) -> str:
        """Keep an answer for its terminal, and tell it; see the port."""
        if self._nursery is None:
            raise DeliveryBusyError("terminals are not served now")
        chat = delivery.address.chat
        delivery = with_path(delivery, self._parts.blobs)
        receipt = SILENCE
        if delivery.kind != "silence":
            try:
                if self.kept.get(chat) is None:
                    await self.kept.see(chat, is_passing=False)
                said = await self.kept.add(delivery)
            except StoreUnavailableError as error:
                raise DeliveryBusyError(str(error)) from error
            except StoreError as error:
                raise DeliveryRefusedError(str(error)) from error
            if said is not None:
                receipt = str(said.number)
                for seat in self._at(chat):
                    seat.ring(said.number)
        await self._awaited.answered(self._ingress, delivery)
        return receipt

    async def look_up(self, delivery: Delivery) -> str | None:
        """Refuse: `abilities` say that deliveries are repeated without asking.

        Raises:
            DeliveryBusyError: always.
        """
        raise DeliveryBusyError(f"{delivery.id} is simply sent again")

    def show_draft(self, draft: Draft) -> None:
        """Show a piece of an answer at its terminal."""
        for seat in self._at(draft.address.chat):
            seat.show(TerminalDraft(draft, self._shown(draft.agent)))

    def show_typing(self, typing: Typing) -> None:
        """Show that an agent works at an answer, likewise."""
        for seat in self._at(typing.address.chat):
            seat.show(TerminalTyping(self._shown(typing.agent), typing.is_over))

    async def settle(self, inbound: Inbound, reason: str) -> None:
        """Tell the terminal that nothing more will be said to a message."""
        await trio.lowlevel.checkpoint()
        self._awaited.settled(inbound, reason)

    def roster(self) -> TerminalRoster:
        """Say who is here, and which commands there are."""
        team = self._parts.backstage.roster().team
        found = [(name, team.personas.get(name)) for name in team.names]
        agents = tuple(
            ShownAgent(
                name,
                self._shown(name),
                "" if each is None else each.config.description,
                "" if each is None else each.config.model,
            )
            for name, each in found
        )
        commands = tuple(
            (word, f"{each.arguments} {each.meaning}".strip())
            for word, each in COMMANDS.items()
        )
        return TerminalRoster(agents, team.table.default_agent, commands)

    # --- terminals ----------------------------------------------------------------

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Be there for one terminal, until it goes."""
        async with stream:
            try:
                await self._serve(stream)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass  # it has gone
            except (FrameTooLongError, msgspec.MsgspecError, StoreError) as error:
                LOG.warning("terminal disconnected", why=str(error))
            except BaseExceptionGroup as group:
                lost = (trio.BrokenResourceError, trio.ClosedResourceError, StoreError)
                _, rest = group.split((*lost, FrameTooLongError, msgspec.MsgspecError))
                if rest is not None:
                    raise

    async def _let_in(self, stream: trio.SocketStream) -> None:
        """Serve a terminal of another process, if its owner is ours.

        trio closes the stream at the end.
        """
        owner = owner_of(stream.socket)
        if owner not in {None, os.getuid()}:
            LOG.warning("terminal refused: it is another user's", user=owner)
            gone = (trio.BrokenResourceError, FrameTooLongError)
            with trio.move_on_after(HELLO_WITHIN), contextlib.suppress(*gone):
                await FrameReader(stream).line()  # or its sending would fail
                await send(stream, TerminalRefused(NOT_YOURS.format(os.getuid())))
            return
        await self.serve(stream)

    async def _serve(self, stream: trio.abc.Stream) -> None:
        reader = FrameReader(stream)
        line = await reader.line()
        if line is None:
            return
        hello = READS_TERMINAL.decode(line)
        if why := self._refusal(hello):
            await send(stream, TerminalRefused(why))
            return
        assert isinstance(hello, TerminalHello)  # noqa: S101  else it was refused
        chat = hello.chat or self._free_chat()
        client = await self.kept.see(chat, is_passing=False, claims=hello.after)
        after = hello.after if 0 <= hello.after <= client.last else client.has
        seat = TerminalSeat(self, stream, hello, chat, after)
        self._seats[seat] = None
        seat.ring(client.last)  # what was said meanwhile
        try:
            user = hello.user or self._config.user
            await send(stream, TerminalWelcome(__version__, chat, after, user))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(seat.tell)
                while (line := await reader.line()) is not None:
                    await self._take(READS_TERMINAL.decode(line), seat)
                nursery.cancel_scope.cancel()
        finally:
            del self._seats[seat]

    def _refusal(self, hello: FromTerminal) -> str:
        """Say why a terminal is not let in; empty: it is."""
        if not isinstance(hello, TerminalHello):
            return "a terminal says hello first"
        if hello.release != __version__:
            return OTHER_RELEASE.format(theirs=__version__, ours=hello.release)
        if hello.chat and not CHAT.fullmatch(hello.chat):
            return "a conversation has up to 64 of A-Z a-z 0-9 . _ - as its name"
        known = self._parts.agents()
        if hello.agent and hello.agent not in known:
            return f"there is no agent {hello.agent[:64]!r}; known: {', '.join(known)}"
        if len(self._seats) >= MOST_SEATS:
            return FULL.format(most=MOST_SEATS)
        return ""

    def _free_chat(self) -> str:
        taken = {seat.chat for seat in self._seats}
        chat, number = FIRST_CHAT, 1
        while chat in taken:
            number += 1
            chat = f"{FIRST_CHAT}-{number}"
        return chat

    async def _take(self, frame: FromTerminal, seat: TerminalSeat) -> None:
        match frame:
            case TerminalSay():
                taken = await self._submit(frame, seat)
                seat.show(taken)
                self._awaited.tell_again(taken.correlation_id)
            case TerminalHas():
                await self.kept.has(seat.chat, frame.number)
            case TerminalHello():
                pass  # said twice: nothing new

    async def _submit(self, say: TerminalSay, seat: TerminalSeat) -> TerminalTaken:
        inbound = self._inbound(say, seat)
        try:
            # Sent again, if a connection was lost after it was sent.
            again = await self._awaited.hand_in(self._ingress, inbound)
        except NOT_TAKEN as error:
            LOG.warning("message not taken", correlation_id=inbound.id)
            is_final = isinstance(error, MessageRefusedError)
            why = str(error) or "refused"
            return TerminalTaken(say.id, refused=why, is_final=is_final)
        return TerminalTaken(say.id, again or inbound.correlation_id)

    def _inbound(self, say: TerminalSay, seat: TerminalSeat) -> Inbound:
        new_id = self._parts.ids.new()
        return Inbound(
            id=new_id,
            correlation_id=new_id,
            platform="terminal",
            platform_id=platform_id(seat.chat, say.id),
            address=Address(self._name, seat.chat),
            # The settings' person, whatever the name: they own this process.
            sender_id=self._config.user,
            sender_name=seat.user or self._config.user,
            text=say.text,
            received_at=self._parts.clock.wall(),
            agent=seat.agent,
            wants_drafts=True,
            attachments=tuple(attachment(x.name, x.content) for x in say.files),
        )

    # --- the agents' side ---------------------------------------------------------

    def _at(self, chat: str) -> list[TerminalSeat]:
        return [seat for seat in self._seats if seat.chat == chat]

    def _shown(self, agent: str) -> str:
        return self._parts.shown(agent) if agent else ""

    def _settle(self, over: MessageOver) -> None:
        """Tell terminals that all answers to a message were shown."""
        if name := client_name(over.chat, over.message):
            for seat in self._at(over.chat):
                seat.show(TerminalSettled(name, over.correlation_id, over.reason))

    @contextlib.contextmanager
    def _open_door(self) -> Generator[trio.SocketListener | None]:
        """Listen for terminals of other processes; None: there is no place for that."""
        database = self._parts.database
        if database is None:
            yield None
            return
        path = socket_beside(database)
        try:
            door = listen_at(path)
        except OSError as error:
            # Why no failure: an operator can do without it.
            LOG.warning(
                "other terminals cannot connect", path=str(path), why=str(error)
            )
            yield None
            return
        own = mark_of(path)
        try:
            yield trio.SocketListener(trio.socket.from_stdlib_socket(door))
        finally:
            door.close()
            with contextlib.suppress(FileNotFoundError):
                # It may be the next company's by now, which took the database over.
                if mark_of(path) == own:
                    path.unlink()


class TerminalSeat:
    """One terminal that is connected.

    Args:
        hello: what it said first.
        after: the number of the last answer that it has.
    """

    def __init__(
        self,
        transport: TerminalTransport,
        stream: trio.abc.SendStream,
        hello: TerminalHello,
        chat: str,
        after: int,
    ) -> None:
        self._transport = transport
        self._stream = stream
        self.chat = chat
        self.user, self.agent = hello.user, hello.agent
        self._after = after
        self._queue: deque[FromCompany | int] = deque()
        """What is to be sent, in order; a number: kept answers up to it."""

        self._bell = trio.Event()
        self._roster: TerminalRoster | None = None

    def ring(self, number: int) -> None:
        """Learn that answers are kept, up to this number."""
        self._queue.append(number)
        self._bell.set()

    def show(self, frame: FromCompany) -> None:
        """Send something that is not kept."""
        is_draft = isinstance(frame, TerminalDraft | TerminalTyping)
        if not is_draft or len(self._queue) < MOST_DRAFTS:
            self._queue.append(frame)
            self._bell.set()

    async def tell(self) -> None:
        """Send whatever there is; never returns.

        Raises:
            trio.BrokenResourceError: the terminal has gone.
            StoreError: what is kept cannot be read.
        """
        while True:
            with trio.move_on_after(ROSTER_EVERY):
                await self._bell.wait()
            self._bell = trio.Event()
            if (roster := self._transport.roster()) != self._roster:
                self._roster = roster
                await send(self._stream, roster)
            while self._queue:
                frame = self._queue.popleft()
                if isinstance(frame, int):
                    await self._tell_kept(frame)
                else:
                    await send(self._stream, frame)

    async def _tell_kept(self, last: int) -> None:
        kept, shown = self._transport.kept, self._transport.shown
        while self._after < last:
            limit = min(PAGE, last - self._after)
            page = await kept.after(self.chat, self._after, limit)
            for said in page:
                told = TerminalTold(
                    number=said.number,
                    agent=said.agent,
                    shown=shown.get(said.agent, said.agent),
                    text=said.text,
                    correlation_id=said.correlation_id,
                    is_aside=said.is_aside,
                    reply_to=said.reply_to,
                )
                await send(self._stream, told)
                self._after = said.number
            if not page:  # they were forgotten
                self._after = last


# --- the socket -------------------------------------------------------------------

PRIVATE: Final = 0o177
CREDENTIALS: Final = struct.Struct("iII")  # Linux: process, user, group (unix(7))


def listen_at(path: Path) -> socket.socket:
    """Listen on a Unix socket that only this user may open.

    One that a process left behind is replaced: of two companies with one database, the
    second does not start.

    Raises:
        OSError: the file system has no sockets, the path is too long, or something
            else is there.
    """
    if os.path.lexists(path) and not stat.S_ISSOCK(path.lstat().st_mode):
        raise FileExistsError(f"there is a file that is no socket: {path}")
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.unlink(missing_ok=True)
        before = os.umask(PRIVATE)
        try:
            with short_name(path) as name:
                door.bind(name)
        finally:
            os.umask(before)
        door.listen(MOST_SEATS)
    except BaseException:  # whatever ends it, no socket stays open
        door.close()
        raise
    return door


def mark_of(path: Path) -> tuple[int, int, int]:
    """Give what tells a file from any other that has its name later."""
    seen = path.lstat()
    return seen.st_dev, seen.st_ino, seen.st_ctime_ns


async def dial(path: Path) -> trio.abc.Stream:
    """Connect to the company that listens there.

    Raises:
        OSError: none does.
    """
    with short_name(path) as name:
        stream = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
        try:
            await stream.connect(name)
        except BaseException:  # cancelled, too: nobody else could close it
            stream.close()
            raise
    return trio.SocketStream(stream)


LONGEST_NAME = 100
"""Bytes of a socket's path. Source: unix(7) has 108 with the last 0, macOS 104."""


@contextlib.contextmanager
def short_name(path: Path) -> Generator[str]:
    """Give a name of a path that is short enough for a socket, as far as can be."""
    if len(os.fsencode(path)) <= LONGEST_NAME:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def owner_of(peer: trio.socket.SocketType) -> int | None:
    """Give the user whose process is at the other end; None: the system cannot say."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None  # the socket's file is private all the same
    size = CREDENTIALS.size
    found = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return int(CREDENTIALS.unpack(found)[1])


make_transport = TerminalTransport
