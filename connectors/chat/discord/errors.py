"""What an error of discord.py, or of what is beneath it, means; pure.

The kinds are those of `connectors/chat/errors.py`.
"""

from __future__ import annotations

import aiohttp
import discord

from connectors.asyncio_bridge.bridge import BridgeError
from connectors.chat.errors import (
    LONGEST_QUOTE,
    BusyError,
    LostError,
    PlatformError,
    RefusedError,
    ShutOutError,
)

UNAUTHORIZED, FORBIDDEN, TOO_MANY, SERVER_FAULT = 401, 403, 429, 500

# Source: discord.py takes a 429 without a `Via` header for a ban by Cloudflare, which
# Discord gives for 10 minutes after 10,000 invalid requests.
BANNED_FOR = 600.0
"""Seconds."""

FAULTS = (
    discord.DiscordException,
    aiohttp.ClientError,
    BridgeError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    OSError,
    RuntimeError,
    TimeoutError,
    TypeError,
    ValueError,
)
"""What discord.py raises: its own errors, those of the network, and whatever an answer
that it does not understand makes of its code."""

NOT_ASKED = (aiohttp.ClientConnectorError, ConnectionRefusedError, BridgeError)

CLOSE_CODES = {
    4004: "the token is not taken (4004): make a new one in the developer portal (Bot,"
    " Reset Token)",
    4010: "an invalid shard was named (4010)",
    4011: "the bot is in so many servers that it must be sharded (4011), which"
    " Callboard does not do",
    4012: "Discord no longer speaks this version of its gateway (4012): upgrade"
    " discord.py",
    4013: "an intent was asked for that does not exist (4013): upgrade discord.py",
    4014: "an intent was asked for that the bot may not have (4014): switch on Message"
    " Content Intent in the developer portal (Bot), or set message_content = false",
}
"""Source: developers' reference, "Gateway Close Event Codes": those after which nobody
may connect again."""


def read_error(error: Exception) -> PlatformError:
    """Say what an error of discord.py, or of what is beneath it, means."""
    if isinstance(error, PlatformError):
        return error
    if isinstance(error, discord.DiscordException):
        return read_library(error)
    return BusyError(told(error)) if isinstance(error, NOT_ASKED) else lost(error)


def read_library(error: discord.DiscordException) -> PlatformError:
    """Say what one of discord.py's own errors means."""
    match error:
        case discord.RateLimited():
            return BusyError("too many requests", error.retry_after)
        case discord.PrivilegedIntentsRequired():
            return ShutOutError(CLOSE_CODES[4014])
        case discord.LoginFailure():
            return ShutOutError(CLOSE_CODES[4004].replace(" (4004)", ""))
        case discord.ConnectionClosed() if error.code in CLOSE_CODES:
            return ShutOutError(CLOSE_CODES[error.code])
        case discord.HTTPException():
            return read_refusal(error)
        case _:
            return lost(error)


def lost(error: Exception) -> LostError:
    """Say that nobody knows what became of a request."""
    return LostError(told(error))


def read_refusal(error: discord.HTTPException) -> PlatformError:
    """Return the error that an answer other than 2xx means."""
    words = " ".join(error.text.split())[:LONGEST_QUOTE]
    said = f"HTTP {error.status}, {error.code}" + (f": {words}" if words else "")
    if error.status == UNAUTHORIZED:
        return ShutOutError(f"the token is not taken ({said})")
    if error.status == TOO_MANY:
        return BusyError(f"no more requests are taken ({said})", BANNED_FOR)
    if error.status >= SERVER_FAULT:
        # Why busy: messages carry a nonce, all else may be done twice.
        return BusyError(said)
    return RefusedError(said, str(error.code), error.status)


def told(error: BaseException) -> str:
    """Describe an error; some errors have no words."""
    words = " ".join(str(error).split())[:LONGEST_QUOTE]
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
