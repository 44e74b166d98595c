"""What our requests come to on a real Synapse: gaps, repeats, edits, signs, files."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trio
from msgspec import structs

from actors.errors import DeliveryRefusedError
from actors.messages.deliveries import Delivery, Edit, Reaction
from actors.messages.inbound import Address, Quoted
from connectors.chat.matrix.platform import MatrixAccountConfig, MatrixConfig
from connectors.chat.matrix.transport import MatrixTransport
from runtime.secret import Secret
from tests.fakes.chat.ingress import FakeIngress
from tests.live.matrix.crew import Crew
from tests.live.matrix.synapse import Room, wait_until
from tests.support.chat.matrix_bed import KeptBookmarks
from tests.support.transport_parts import transport_parts

pytestmark = pytest.mark.live

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


class Line:
    """Anna's account alone, with an ingress that keeps what it is given.

    Args:
        crew: who is on the homeserver.
    """

    def __init__(self, crew: Crew) -> None:
        self.ingress = FakeIngress()
        self.bookmarks = KeptBookmarks()
        anna = MatrixAccountConfig(
            user=crew.anna.user, access_token=Secret(crew.anna.token)
        )
        self._config = MatrixConfig(
            homeserver=crew.synapse.url, accounts={"anna": anna}, invites="anyone"
        )
        self.transport = self.make()

    def make(self) -> MatrixTransport:
        """Make the transport, as a new process would."""
        return MatrixTransport(
            "matrix", self._config, transport_parts(), self.bookmarks
        )

    async def _trouble(self) -> str:
        await trio.lowlevel.checkpoint()
        return self.transport.trouble

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[None]:
        """Listen, as a new process, until the block ends."""
        self.transport = self.make()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.transport.listen, self.ingress)
            await wait_until(self._trouble, lambda trouble: not trouble)
            yield
            nursery.cancel_scope.cancel()


@pytest.fixture
async def line(crew: Crew) -> Line:
    """Give the account, for one test."""
    return Line(crew)


@pytest.fixture
async def room(crew: Crew, line: Line) -> Room:
    """Give a room that Zoe and Anna are in."""
    made = await crew.zoe.room(crew.anna)
    async with line.listening():
        await made.wait_joined(crew.anna)
    # At its very first start an account also answers what stands last in other rooms.
    line.ingress = FakeIngress()
    return made


def saying(room: Room, text: str, **more: object) -> Delivery:
    fields: dict[str, object] = {
        "id": f"{room.id}/{text[:20]}",
        "correlation_id": "c",
        "address": Address("matrix", room.id),
        "agent": "anna",
        "text": text,
    }
    return Delivery(**{**fields, **more})  # type: ignore[arg-type]


async def test_a_long_gap_is_filled_in_order(line: Line, room: Room) -> None:
    for number in range(180):
        await room.say(f"{number}")
    async with line.listening():
        got = [(await line.ingress.next()).text for _ in range(180)]
        assert got == [f"{number}" for number in range(180)]
        await room.say("and now")
        assert (await line.ingress.next()).text == "and now"


async def test_said_again_after_a_restart_it_is_seen_once(
    crew: Crew, line: Line, room: Room
) -> None:
    async with line.listening():
        first = await line.transport.deliver(saying(room, "hi"))
    async with line.listening():
        assert await line.transport.deliver(saying(room, "hi")) == first
    assert await room.wait_said(1, crew.anna) == ["hi"]


@pytest.mark.parametrize("letter", ["\x01", "&", "🦊", "*"])
async def test_the_longest_messages_and_edits_are_taken(
    line: Line, room: Room, letter: str
) -> None:
    most = letter * line.transport.abilities.max_part_chars
    async with line.listening():
        receipt = await line.transport.deliver(saying(room, most))
        await line.transport.presence.edit(edit_of(room, receipt, most))


def edit_of(room: Room, receipt: str, text: str) -> Edit:
    return Edit(
        id=f"{receipt}/{text[:5]}",
        correlation_id="c",
        address=Address("matrix", room.id),
        agent="anna",
        receipt=receipt,
        text=text,
    )


def sign(room: Room, message: str, shown: str, instead_of: str = "") -> Reaction:
    return Reaction(
        correlation_id=f"c-{shown}",
        address=Address("matrix", room.id),
        agent="anna",
        message=message,
        sign=shown,
        instead_of=instead_of,
    )


async def test_an_edit_replaces_what_was_said(
    crew: Crew, line: Line, room: Room
) -> None:
    async with line.listening():
        receipt = await line.transport.deliver(saying(room, "he"))
        await line.transport.presence.edit(edit_of(room, receipt, "hello **you**"))
    path = f"/_matrix/client/v1/rooms/{room.id}/relations/{receipt}/m.replace"
    (edit,) = (await crew.zoe.ask("GET", path))["chunk"]
    assert edit["content"]["m.new_content"]["body"] == "hello **you**"


async def test_signs_are_exchanged_also_those_of_an_earlier_process(
    crew: Crew, line: Line, room: Room
) -> None:
    asked = await room.say("hello")
    eyes, done = sign(room, asked, "👀"), sign(room, asked, "✅", "👀")
    again = sign(room, asked, "👀")
    async with line.listening():
        await line.transport.presence.react(eyes)
        await line.transport.presence.react(structs.replace(again, correlation_id="d"))
    async with line.listening():
        await line.transport.presence.react(done)
    path = f"/_matrix/client/v1/rooms/{room.id}/relations/{asked}/m.annotation"
    signs = (await crew.zoe.ask("GET", path))["chunk"]
    keys = [each["content"].get("m.relates_to", {}).get("key") for each in signs]
    assert [key for key in keys if key] == ["✅"]


async def test_a_picture_and_what_a_reply_replies_to_come_along(
    crew: Crew, line: Line, room: Room
) -> None:
    uri = await crew.zoe.upload(PNG, "image/png")
    details = {"mimetype": "image/png", "size": len(PNG)}
    old = await room.say("an old word")
    async with line.listening():
        await line.ingress.next()
    async with line.listening():
        await room.say("cat.png", msgtype="m.image", url=uri, info=details)
        picture = await line.ingress.next()
        related = {"m.in_reply_to": {"event_id": old}}
        mentions = {"user_ids": [crew.anna.user]}
        await room.say("why?", **{"m.relates_to": related, "m.mentions": mentions})
        reply = await line.ingress.next()
    (attachment,) = picture.attachments
    assert (attachment.content, attachment.name) == (PNG, "cat.png")
    assert reply.quoted == Quoted("an old word", "zoe", "")
    assert (reply.mentions, reply.present) == (("anna",), ("anna",))
    assert (reply.is_direct, reply.roles) == (True, ("admin",))


async def test_where_we_are_not_nothing_is_said(
    crew: Crew, line: Line, room: Room
) -> None:
    async with line.listening():
        await line.transport.deliver(saying(room, "hi"))
        await crew.zoe.client(
            "POST", f"/rooms/{room.id}/kick", {"user_id": crew.anna.user}
        )
        with pytest.raises(DeliveryRefusedError):
            await line.transport.deliver(saying(room, "ho"))
