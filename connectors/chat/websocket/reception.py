"""Who is let in: before there is a WebSocket, and by the first frame."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

import msgspec
import trio

from actors.ingress import RefusedAttempt
from connectors.chat.websocket import frames
from connectors.chat.websocket.errors import FrameError, RefusedError
from connectors.chat.websocket.frames import Hello

if TYPE_CHECKING:
    from connectors.chat.websocket.house import House
    from connectors.chat.websocket.wire import Head, Wire

KEY_HINT = 'send "Authorization: Bearer <key>", or the key in the first frame'


class Guest(msgspec.Struct, frozen=True):
    """Who was let in."""

    hello: Hello
    first: tuple[str, ...]
    """What it sent meanwhile, and is still to be read."""

    has_said_hello: bool


async def receive(wire: Wire, house: House, where: str) -> Guest:
    """Let a client in.

    Args:
        wire: to it.
        house: what it comes to.
        where: its address, for the record of those who were not let in.

    Raises:
        RefusedError: it is not let in.
        GoneError: it has gone.
    """
    head = await hear_head(wire, house.config.hello_timeout)
    try:
        check_head(head, house)
        has_key = check_key(head.key, house)
    except RefusedError as error:
        house.ingress.refuse(RefusedAttempt(error.code, where))
        raise
    await wire.accept()
    guest = await first_words(wire, house)
    if not has_key and not check_key(guest.hello.key, house):
        house.ingress.refuse(RefusedAttempt("bad_key", where))
        raise RefusedError("unauthorized", "the key is missing", KEY_HINT)
    return guest


async def hear_head(wire: Wire, within: float) -> Head:
    """Wait for the request for a WebSocket.

    Raises:
        RefusedError: it does not come.
        GoneError: the client has gone.
    """
    try:
        with trio.fail_after(within):
            return await wire.hear_head()
    except trio.TooSlowError as error:
        told = f"no request within {within:g} s"
        cure = "ask for the WebSocket at once"
        raise RefusedError("too_slow", told, cure) from error


def check_head(head: Head, house: House) -> None:
    """Check what a client said when it connected.

    Raises:
        RefusedError: it is not let in.
    """
    if head.query:
        told = "nothing is taken from the address: it ends up in logs"
        cure = 'send it in the first frame: {"type": "hello", ...}'
        raise RefusedError("in_address", told, cure)
    origin, origins = head.headers.get("origin", ""), house.config.origins
    if origin and origin not in origins and "*" not in origins:
        told = f"pages of {origin[:80]} may not connect"
        cure = f"list it in [connectors.{house.connector}] origins"
        raise RefusedError("bad_origin", told, cure, status=403)


def check_key(given: str, house: House) -> bool:
    """Check a key; False: none was given, and one is needed.

    Raises:
        RefusedError: it is wrong.
    """
    if house.config.api_key is None:
        return True
    if not given:
        return False
    # Why bytes: compare_digest refuses text that is not ASCII.
    needed = house.config.api_key.reveal().encode()
    if not hmac.compare_digest(given.encode(errors="replace"), needed):
        raise RefusedError("bad_key", "the key is wrong", KEY_HINT, status=401)
    return True


async def first_words(wire: Wire, house: House) -> Guest:
    """Wait a moment for a `hello`; whoever says nothing may still speak later.

    Raises:
        RefusedError: the first frame is none.
        GoneError: the client has gone.
    """
    heard: list[str] = []
    with trio.move_on_after(house.config.hello_timeout):
        while not heard:
            heard = [each for each in await wire.hear() if isinstance(each, str)]
    if heard:
        try:
            frame = frames.read(heard[0])
        except FrameError as error:
            if house.config.api_key is not None:
                raise RefusedError(error.code, error.text, error.cure) from error
        else:
            if isinstance(frame, Hello):
                house.figures.frame("hello")
                return Guest(frame, tuple(heard[1:]), has_said_hello=True)
    return Guest(Hello(), tuple(heard), has_said_hello=False)
