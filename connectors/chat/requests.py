"""Requests to a platform: over one pool of connections, and again until it answers.

`HttpPool` is for platforms without an SDK. It keeps the deadlines and says what went
wrong; whoever asks knows whether to ask again, and `until_answered` does so.
`fetch_linked` fetches the files of platforms that give their addresses.

JSON that nobody has checked is read here, too: whatever is missing or odd is simply
empty. Strangers can send a platform messages of any shape, and platforms pass them on.

Errors of platforms, and what each means to a courier. A platform turns its answers into
these, or into finer kinds of them.

PlatformError
├── BusyError      not carried out, or safe to ask again; may know after how long
├── LostError      asked, and nobody knows whether it was carried out
│   └── GoneError  the connection itself has ended; another is to be opened
├── RefusedError   asking again cannot help
└── ShutOutError   the account is not let in, and will not be before somebody mends it
"""

from __future__ import annotations

import json
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Mapping,
)
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import IO, NamedTuple, Self, TypedDict, TypeVar, Unpack, cast
from urllib.parse import urlsplit

import httpx
import msgspec
import trio

from actors.errors import DeliveryBusyError, DeliveryRefusedError, DeliveryUnknownError
from actors.messages.inbound import Attachment
from connectors.chat.inbound import PlatformFile, Waits

Json = dict[str, object]


def decode(body: bytes) -> Json:
    """Read a JSON object; a list comes as its `chunk`, as answers in pages have it.

    Raises:
        ValueError: it is neither.
    """
    try:
        found: object = msgspec.json.decode(body)
    except msgspec.DecodeError:
        # Why: it refuses halves of characters, with which one event of one stranger
        # would stop a whole account. `text` makes them whole.
        found = json.loads(body)
    if isinstance(found, list):
        return {"chunk": cast("list[object]", found)}
    if isinstance(found, dict):
        return cast("Json", found)
    raise ValueError("it is no JSON object")


def table(value: object) -> Json:
    """Return an object; empty if it is none."""
    return cast("Json", value) if isinstance(value, dict) else {}


def tables(value: object) -> tuple[Json, ...]:
    """Return the objects of a list."""
    if not isinstance(value, list):
        return ()
    found = cast("list[object]", value)
    return tuple(cast("Json", each) for each in found if isinstance(each, dict))


def text(value: object) -> str:
    """Return a text that can be stored; empty if it is none."""
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else value.encode(errors="replace").decode()


def texts(value: object) -> tuple[str, ...]:
    """Return the texts of a list."""
    if not isinstance(value, list):
        return ()
    found = cast("list[object]", value)
    return tuple(text(each) for each in found if isinstance(each, str))


def whole(value: object) -> int:
    """Return a whole number; 0 if it is none, or beyond what a counter holds."""
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if abs(value) < 1 << 53 else 0


LONGEST_ID = 512
"""Characters of an id that is stored."""


def is_id(value: str) -> bool:
    """Return whether this is an id that can be stored, and answered to."""
    return 0 < len(value) <= LONGEST_ID and value.isprintable() and " " not in value


LONGEST_QUOTE = 200
"""Characters of a platform's own words that are told."""

# Chosen: whatever a platform asks for, whether it has changed its mind is found out
# within an hour; an account is never switched off by one wrong number.
LONGEST_ASKED = 3600.0
"""Seconds of waiting that a platform is granted at most."""


class PlatformError(Exception):
    """A request to a platform failed."""


class BusyError(PlatformError):
    """The platform could not be reached, or has too much to do.

    Args:
        retry_after: seconds it asked us to wait, or None.
    """

    def __init__(self, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class LostError(PlatformError):
    """The request was sent, and its answer got lost."""


class GoneError(LostError):
    """The connection that carries the requests has ended; repeating is in vain."""


class RefusedError(PlatformError):
    """The platform refuses this request for good.

    Args:
        code: the platform's own word or number for it, as `M_FORBIDDEN` or `10003`;
            empty if it has none.
        status: of HTTP; 0 where that says nothing.
    """

    def __init__(self, text: str, code: str = "", status: int = 0) -> None:
        super().__init__(text)
        self.code = code
        self.status = status

    def says(self, *words: str) -> bool:
        """Return whether the error's text contains one of these lower-case words."""
        text = str(self).casefold()
        return any(each in text for each in words)


class ShutOutError(PlatformError):
    """The platform does not accept the account's credentials."""


def wait_asked(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of an answer's `Retry-After`; None if it has none.

    Returns:
        No more than `LONGEST_ASKED`.
    """
    seconds = headers.get("retry-after", "")
    is_number = seconds.isascii() and seconds.isdigit()
    return min(float(seconds), LONGEST_ASKED) if is_number else None


@contextmanager
def translated(look_again: float | None = None) -> Generator[None]:
    """Turn a platform's errors into those of deliveries.

    Args:
        look_again: seconds until an account that is not let in is tried again; None:
            as a courier does by itself.

    Raises:
        DeliveryBusyError: try again later.
        DeliveryUnknownError: asked, and nobody knows.
        DeliveryRefusedError: never try again.
    """
    try:
        yield
    except BusyError as error:
        raise DeliveryBusyError(str(error), retry_after=error.retry_after) from error
    except LostError as error:
        raise DeliveryUnknownError(str(error)) from error
    except ShutOutError as error:
        # The operator can mend it; what is to be said is kept meanwhile.
        text = f"the account is not let in: {error}"
        raise DeliveryBusyError(text, retry_after=look_again) from error
    except RefusedError as error:
        raise DeliveryRefusedError(str(error)) from error


T = TypeVar("T")


async def until_answered(
    ask: Callable[[], Awaitable[T]],
    note: Callable[[PlatformError], object],
    within: float | None = None,
) -> T:
    """Ask until there is an answer; only for requests that may be repeated.

    Args:
        ask: asks once.
        within: seconds after which no further try is begun; None: for ever.

    Raises:
        GoneError: the connection to the platform has ended.
        BusyError: not answered within that time.
        LostError: not answered within that time.
        RefusedError: asking again cannot help.
        ShutOutError: the account is not let in.
    """
    waits = Waits()
    until = None if within is None else trio.current_time() + within
    while True:
        try:
            return await ask()
        except GoneError:
            raise
        except (BusyError, LostError) as error:
            note(error)
            asked = error.retry_after if isinstance(error, BusyError) else None
            wait = waits.next(asked)
            if until is not None and trio.current_time() + wait > until:
                raise
        await trio.sleep(wait)


OK = 200

MOST_REFUSAL = 64 * 1024
"""Bytes of an answer that says no."""

CONNECT_TIMEOUT = 10.0
"""Seconds to connect, and again to wait for a free connection."""

NOT_ASKED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
"""Errors after which the server surely knows of nothing."""


class Upload(NamedTuple):
    """A file that goes with a request, in a form."""

    field: str
    """The form's field that it is."""

    path: Path
    name: str
    media_type: str


class RequestContent(TypedDict, total=False):
    """What a request says, as `httpx` takes it."""

    params: Mapping[str, str] | None
    headers: Mapping[str, str]
    content: bytes | AsyncIterator[bytes] | None
    json: Mapping[str, object]
    data: Mapping[str, str] | None


class HttpAnswer(NamedTuple):
    """A whole answer."""

    status: int
    headers: httpx.Headers
    body: bytes


class HttpPool:
    """The connections to one platform; the first user opens them, the last closes them.

    Args:
        network: carries the requests; None: the network does.
        too_much: the error for an answer that is too long or compressed.
    """

    def __init__(
        self,
        network: httpx.AsyncBaseTransport | None,
        most: int,
        too_much: type[PlatformError],
    ) -> None:
        self._network = network
        self._limits = httpx.Limits(max_connections=most)
        self._too_much = too_much
        self._client: httpx.AsyncClient | None = None
        self._users = 0

    async def __aenter__(self) -> Self:
        """Open the connections, for the first user."""
        if self._client is None:
            self._client = httpx.AsyncClient(
                transport=self._network,
                headers={"Accept-Encoding": "identity", "User-Agent": "callboard"},
                limits=self._limits,
                trust_env=False,
            )
        self._users += 1
        await trio.lowlevel.checkpoint_if_cancelled()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close them, after the last user."""
        self._users -= 1
        client = self._client
        if self._users == 0 and client is not None:
            self._client = None
            # Cancelled half-way it would leave connections open.
            with trio.CancelScope(shield=True):
                await client.aclose()

    async def send(
        self,
        method: str,
        url: str,
        *,
        within: float,
        silence: float | None = None,
        most: int,
        upload: Upload | None = None,
        **content: Unpack[RequestContent],
    ) -> HttpAnswer:
        """Send a request, and read its whole answer, whatever its status.

        Args:
            within: seconds for all of it.
            silence: seconds in which the server may say nothing, if that is less.
            most: bytes of the answer, unless it says no.

        Raises:
            BusyError: it cannot be reached, or nobody listens now, or a file that goes
                with the request cannot be read.
            LostError: it was asked, and no whole answer came.
            PlatformError: the answer is too long, or compressed; see `too_much`.
        """
        client = self._client
        if client is None:
            raise BusyError("nobody listens now", retry_after=1.0)
        timeout = httpx.Timeout(silence or within, connect=CONNECT_TIMEOUT)
        with trio.move_on_after(within):
            try:
                with opened(upload) as files:
                    async with client.stream(
                        method,
                        url,
                        files=files,
                        timeout=timeout,
                        follow_redirects=False,
                        **content,
                    ) as response:
                        is_done = response.status_code == OK
                        longest = most if is_done else MOST_REFUSAL
                        body = await self._read(response, longest)
            except NOT_ASKED as error:
                raise BusyError(told(error)) from error
            except (httpx.HTTPError, httpx.InvalidURL, RuntimeError) as error:
                # httpx raises a RuntimeError where another task has closed it.
                raise LostError(told(error)) from error
            except OSError as error:  # httpx has its own for the network's
                text = f"the file cannot be read now: {error.strerror}"
                raise BusyError(text) from error
            return HttpAnswer(response.status_code, response.headers, body)
        raise LostError(f"not done after {within:g} s")

    async def _read(self, response: httpx.Response, most: int) -> bytes:
        """Read a body, but no more than so many bytes."""
        if response.headers.get("content-encoding", "identity") != "identity":
            # Not asked for, and a small compressed body can fill the memory.
            raise self._too_much("the answer is compressed")
        pieces: list[bytes] = []
        size = 0
        # Left half read, a generator is found by the collector, which complains.
        bytes_read = cast("AsyncGenerator[bytes]", response.aiter_bytes())
        async with aclosing(bytes_read) as body:
            async for piece in body:
                size += len(piece)
                if size > most:
                    raise self._too_much(f"it is above {most} bytes")
                pieces.append(piece)
        return b"".join(pieces)


def read_json(body: bytes) -> Json:
    """Read an answer as a JSON object.

    Raises:
        LostError: it is none.
    """
    try:
        return decode(body)
    except (ValueError, RecursionError) as error:
        raise LostError(f"its answer is no JSON: {error}") from error


@contextmanager
def opened(
    upload: Upload | None,
) -> Generator[dict[str, tuple[str, IO[bytes], str]] | None]:
    """Open a file for a form, until the block ends."""
    if upload is None:
        yield None
        return
    with upload.path.open("rb") as file:
        yield {upload.field: (upload.name, file, upload.media_type)}


def told(error: Exception) -> str:
    """Describe an error; some of httpx's errors have no words."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


class LinkedAttachment(PlatformFile, frozen=True):
    """A file of a message, at an address that holds for a while."""

    url: str
    size: int
    """Bytes; 0: the platform does not say."""


SERVER_FAULT = 500

# Chosen: a short fault costs nobody a file, and a longer one holds a message, and all
# that follows it in its chat, back for no longer than this.
TRIED_WITHIN = 20.0
"""Seconds for a file: for all of it if it has an address of its own, otherwise until no
further try is begun."""

BETWEEN = 1.0
"""Seconds between two tries."""


async def fetch_linked(
    file: LinkedAttachment,
    places: Iterable[str],
    most: int,
    platform: str,
    network: httpx.AsyncBaseTransport | None = None,
) -> tuple[Attachment | None, str]:
    """Fetch a file at once: its address holds for a while only.

    Args:
        places: addresses of servers from which files are fetched, and no others.
        most: bytes.
        platform: what people call where it is from.
        network: carries the requests; None: the network does.

    Returns:
        The attachment, or why there is none.
    """
    if not is_within(file.url, places):
        return None, f"it lies elsewhere than {platform}'s files do"
    if file.size > most:
        return None, f"it is above {most} bytes"
    why = f"not done after {TRIED_WITHIN:g} s"
    with trio.move_on_after(TRIED_WITHIN):
        while True:
            content, media_type, why, is_final = await fetch_once(
                file.url, most, network
            )
            if content is not None:
                return file.attached(content, media_type), ""
            if is_final:
                return None, why
            await trio.sleep(BETWEEN)
    return None, why


async def ask_for_file(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask for a file; a server that has too much to do is asked again for a while.

    Raises:
        PlatformError: as `until_answered`.
    """
    return await until_answered(ask, lambda _: None, TRIED_WITHIN)


def is_within(url: str, places: Iterable[str]) -> bool:
    """Return whether an address is at one of some servers."""
    try:
        asked = urlsplit(url)
        return any(
            (asked.scheme, asked.hostname, asked.port)
            == (each.scheme, each.hostname, each.port)
            for each in map(urlsplit, places)
        )
    except ValueError:
        return False


async def fetch_once(
    url: str, most: int, network: httpx.AsyncBaseTransport | None
) -> tuple[bytes | None, str, str, bool]:
    """Ask once.

    Returns:
        The bytes and their type; or None, why, and whether that is final. The address
        is in no text: it is signed.
    """
    try:
        async with (
            httpx.AsyncClient(
                transport=network, trust_env=False, timeout=TRIED_WITHIN
            ) as client,
            client.stream("GET", url, headers={"Accept-Encoding": "identity"}) as got,
        ):
            if got.status_code != OK:
                is_final = got.status_code < SERVER_FAULT
                return None, "", f"HTTP {got.status_code}", is_final
            content = await read_raw(got, most)
            if content is None:
                return None, "", f"it is above {most} bytes", True
            media_type = got.headers.get("content-type", "").partition(";")[0]
            return content, media_type, "", True
    except httpx.InvalidURL:
        return None, "", "its address is wrong", True
    except httpx.HTTPError as error:
        return None, "", type(error).__name__, False


async def read_raw(response: httpx.Response, most: int) -> bytes | None:
    """Read a body; None: there is more than so many bytes."""
    pieces: list[bytes] = []
    size = 0
    # Left half read, a generator is found by the collector, which complains.
    async with aclosing(cast("AsyncGenerator[bytes]", response.aiter_raw())) as body:
        async for piece in body:
            size += len(piece)
            if size > most:
                return None
            pieces.append(piece)
    return b"".join(pieces)
