"""Connects only to addresses that were checked: the guard beneath the HTTP client.

A name is resolved once, every address it has is checked, and the connection is made
to one of those, not to the name: between the check and the connection no DNS server
can change its mind. TLS and `Host` still carry the name.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import httpcore
import trio

from connectors.fetch.messages import FetchRefusedError

if TYPE_CHECKING:
    import ssl

    from connectors.fetch.addresses import AddressRules, IPAddress

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Gives every IP address of a host, as text; raises OSError if it has none."""

MAX_ADDRESSES = 32
"""Most answers that are looked at; a name with more is refused."""

FIRST_TRIES = 3.0
"""Seconds that an address may take while there is another one to try."""


async def resolve(host: str, port: int) -> list[str]:
    """Ask the system for a host's addresses, in the order it prefers.

    Raises:
        OSError: it has none, or nobody knows now.
    """
    found = await trio.socket.getaddrinfo(host, port, type=trio.socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


class GuardedNetwork(httpcore.AsyncNetworkBackend):
    """What httpcore connects by."""

    def __init__(self, rules: AddressRules, resolve: Resolve = resolve) -> None:
        self._rules = rules
        self._resolve = resolve
        # Where trio is missing, httpcore has another class of this name.
        self._network = cast("httpcore.AsyncNetworkBackend", httpcore.TrioBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to a host, if all of its addresses may be reached.

        Raises:
            FetchRefusedError: one of them may not.
            httpcore.ConnectError: there is no such host, or nobody answers.
            httpcore.ConnectTimeout: not within `timeout` seconds.
        """
        del local_address  # whichever leads there
        try:
            with trio.fail_after(math.inf if timeout is None else timeout):
                addresses = await self.checked(host, port)
                stream = await self._first_of(addresses, port, socket_options)
        except trio.TooSlowError as error:
            raise httpcore.ConnectTimeout(f"{host} took too long") from error
        return GuardedStream(stream)

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109  httpcore's signature
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Refuse: there is no such thing behind a web address."""
        del timeout, socket_options
        await trio.lowlevel.checkpoint()
        raise FetchRefusedError(f"{path} is a file of this machine")

    async def sleep(self, seconds: float) -> None:
        """Wait, as httpcore asks."""
        await trio.sleep(seconds)

    async def checked(self, host: str, port: int) -> list[IPAddress]:
        """Find the addresses of a host; give them only if all may be reached.

        Raises:
            FetchRefusedError: one of them may not.
            httpcore.ConnectError: it has none.
        """
        addresses = await self._addresses(host, port)
        for address in addresses:
            why = self._rules.why_refused(host, port, address)
            if why:
                raise FetchRefusedError(
                    f"{host} is not fetched: {why}; whoever runs this can allow it "
                    "by the setting fetch.allow"
                )
        return addresses

    async def _addresses(self, host: str, port: int) -> list[IPAddress]:
        try:
            return [ipaddress.ip_address(host)]
        except ValueError:
            pass  # a name
        try:
            found = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"there is no host {host}") from error
        if not found:
            raise httpcore.ConnectError(f"{host} has no address")
        if len(found) > MAX_ADDRESSES:
            raise FetchRefusedError(f"{host} has {len(found)} addresses")
        return [ipaddress.ip_address(each) for each in found]

    async def _first_of(
        self,
        addresses: Sequence[IPAddress],
        port: int,
        socket_options: Iterable[Any] | None,
    ) -> httpcore.AsyncNetworkStream:
        *others, last = addresses
        for address in others:
            try:
                return await self._network.connect_tcp(
                    str(address), port, FIRST_TRIES, None, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue  # the next one may answer; the last one's error is told
        return await self._network.connect_tcp(
            str(last), port, None, None, socket_options
        )


class GuardedStream(httpcore.AsyncNetworkStream):
    """A connection that is not left open when its encryption is cut short."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream

    async def read(
        self,
        max_bytes: int,
        timeout: float | None = None,  # noqa: ASYNC109  httpcore's signature
    ) -> bytes:
        """Read what is there."""
        return await self._stream.read(max_bytes, timeout)

    async def write(
        self,
        buffer: bytes,
        timeout: float | None = None,  # noqa: ASYNC109  httpcore's signature
    ) -> None:
        """Write all of it."""
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  httpcore's signature
    ) -> httpcore.AsyncNetworkStream:
        """Encrypt the connection; close it if that comes to nothing."""
        try:
            return await self._stream.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:  # httpcore closes it after its errors, not if cancelled
            with trio.CancelScope() as at_once:
                at_once.cancel()
                await self._stream.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401  httpcore's signature
        """Tell about the connection; see httpcore."""
        return self._stream.get_extra_info(info)
