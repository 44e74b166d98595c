"""Why something was not fetched.

FetchError
├── FetchRefusedError      ours: the address, port or answer is not allowed; never
│   └── FetchTooLargeError the answer is above the limit
└── FetchFailedError       theirs: DNS, connection, TLS, protocol; perhaps later
    └── FetchTimeoutError  not done in the time allowed
"""

from __future__ import annotations


class FetchError(Exception):
    """Nothing came back; the text says what, where and why, without secrets."""


class FetchRefusedError(FetchError):
    """It must not be fetched, and trying again cannot help."""


class FetchTooLargeError(FetchRefusedError):
    """The answer, as sent or as unpacked, is above the limit."""


class FetchFailedError(FetchError):
    """The other side could not be reached or broke the protocol."""


class FetchTimeoutError(FetchFailedError):
    """It was not done in the time allowed."""
