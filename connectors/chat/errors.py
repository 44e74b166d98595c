"""Errors of platforms, and what each means to a courier; pure.

PlatformError
├── BusyError      not carried out, or safe to ask again; may know after how long
├── LostError      asked, and nobody knows whether it was carried out
│   └── GoneError  the connection itself has ended; another is to be opened
├── RefusedError   asking again cannot help
└── ShutOutError   the account is not let in, and will not be before somebody mends it

The `errors.py` of a platform turns its answers into these, or into finer kinds of them.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from actors.errors import DeliveryBusyError, DeliveryRefusedError, DeliveryUnknownError

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
        text: what happened.
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
        text: what happened.
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

    Args:
        headers: by their small names.

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
