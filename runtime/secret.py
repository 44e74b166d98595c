"""A password, key or token, and where it may come from.

A settings file never holds a secret, only a reference to it: `{ env = "NAME" }`
or `{ file = "path" }`. What is read from there is a `Secret`, which shows its
value to nobody who does not ask for it by name.
"""

from __future__ import annotations

import hmac
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

MASK = "***"

NOT_SET = "(not set here)"
"""Stands for a secret whose source is not there."""

SHORTEST_SECRET = 8
"""Characters. Shorter ones are guessed. Nor are they blotted out of the log, or words
would go with them."""

LARGEST_SECRET_FILE = 65_536
"""Bytes. A longer file is not a secret but a mistaken path."""

ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# Source: values found in public incident reports and example files; a server that
# takes one of them is open to everybody who has read the same example.
PLACEHOLDER_WORDS = """
    api-key api-key-here apikey change-it change-me change-me-now change-this
    changeit changeme enter-your-key-here fill-me-in insert-key-here my-api-key
    my-secret openai-api-key placeholder replace-me replace-this
    replace-with-your-key replaceme secret-key sk-xxx tbd todo your-api-key
    your-api-key-here your-key your-key-here your-password your-password-here
    your-secret your-secret-here your-token your-token-here
"""
PLACEHOLDERS = frozenset(PLACEHOLDER_WORDS.split())

GUESSED_WORDS = """
    default dummy example false key none null password secret token true undefined
"""
GUESSED = frozenset(GUESSED_WORDS.split())
"""Values that many people choose. Servers at home take such a word for a key."""


class SecretSourceError(Exception):
    """A secret cannot be had, or is none. The text never holds the value.

    Args:
        hint: what to do about it.
        is_absent: whether there is no such source here, or none that may be read.
    """

    def __init__(self, text: str, hint: str, *, is_absent: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.hint = hint
        self.is_absent = is_absent


class Secret:
    """A value that is shown only by `reveal`.

    Printing, formatting, logging and encoding it give `***`, an error, or nothing.
    Two secrets are equal when their values are; the comparison takes the same
    time wherever they differ.
    """

    __slots__ = ("_value", "place")

    def __init__(self, value: str, place: str = "") -> None:
        self._value = value
        self.place = place
        """Where it was found, as `the environment variable X`; empty: nobody said."""

    @property
    def is_set(self) -> bool:
        """Whether there is a value; see `UnsetSecret`."""
        return True

    def reveal(self) -> str:
        """Give the value. Hand it straight to what needs it; never keep it."""
        return self._value

    def matches(self, offered: str) -> bool:
        """Tell whether a stranger's text is this secret, in constant time."""
        return hmac.compare_digest(
            self._value.encode("utf-8", "surrogatepass"),
            offered.encode("utf-8", "surrogatepass"),
        )

    def __eq__(self, other: object) -> bool:
        """Compare with another secret; equal to nothing else."""
        return isinstance(other, Secret) and self.matches(other._value)

    def __hash__(self) -> int:
        """Agree with `__eq__`."""
        return hash(self._value)

    def __repr__(self) -> str:
        """Show that there is one, and nothing of it."""
        return f"Secret({MASK})"

    def __str__(self) -> str:
        """Show only the mask."""
        return MASK

    def __format__(self, spec: str) -> str:
        """Show only the mask, in whatever width."""
        return format(MASK, spec)

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled: a pickle would hold the value in the open.

        Raises:
            TypeError: always.
        """
        message = "a Secret cannot be pickled or copied; pass the object itself"
        raise TypeError(message)


class UnsetSecret(Secret):
    """A secret whose source is not there, for those who only look at settings.

    Args:
        error: says what is not there; raised when somebody needs the value after all.
    """

    __slots__ = ("_error",)

    def __init__(self, error: Exception) -> None:
        super().__init__("")
        self._error = error

    @property
    def is_set(self) -> bool:
        """There is no value."""
        return False

    def reveal(self) -> str:
        """Raise the error.

        Raises:
            Exception: the error.
        """
        raise self._error

    def matches(self, offered: str) -> bool:
        """Nothing is this secret."""
        del offered
        return False

    def __str__(self) -> str:
        """Show that there is none here."""
        return NOT_SET


class OpenText:
    """A text that a settings file may hold in the open, or name the source of.

    For what is a secret at one place and plain words at the next: variables of an
    environment, headers of a request.

    Args:
        text: what is written in the open.
        secret: what comes after it; None: nothing does.
    """

    __slots__ = ("_secret", "_text")

    def __init__(self, text: str, secret: Secret | None = None) -> None:
        self._text = text
        self._secret = secret

    @property
    def is_set(self) -> bool:
        """Whether its value is there."""
        return self._secret is None or self._secret.is_set

    @property
    def is_secret(self) -> bool:
        """Whether it must not be shown."""
        return self._secret is not None

    def reveal(self) -> str:
        """Give the value. Hand it straight to what needs it; never keep it."""
        return self._text + ("" if self._secret is None else self._secret.reveal())

    def __eq__(self, other: object) -> bool:
        """Compare with another; equal to nothing else."""
        return isinstance(other, OpenText) and (
            (self._text, self._secret) == (other._text, other._secret)
        )

    def __hash__(self) -> int:
        """Agree with `__eq__`."""
        return hash((self._text, self._secret))

    def __repr__(self) -> str:
        """Show it if it is no secret."""
        return f"OpenText({str(self)!r})"

    def __str__(self) -> str:
        """Show it, or only the mask."""
        return self._text if self._secret is None else str(self._secret)


def from_environment(
    name: str, environment: Mapping[str, str], *, is_given: bool = False
) -> Secret:
    """Take a secret from an environment variable.

    Raises:
        SecretSourceError: it is not set, empty, or a placeholder; or the name is
            none, and then the text does not repeat it: it may be the secret.
    """
    if not ENVIRONMENT_NAME.fullmatch(name):
        raise SecretSourceError(
            "env must be the name of an environment variable",
            "letters, digits and _; never the secret itself",
        )
    if name not in environment:
        raise SecretSourceError(
            f"the environment variable {name} is not set",
            f"set it before you start, for example: export {name}=…",
            is_absent=True,
        )
    place = f"the environment variable {name}"
    return checked(environment[name], place, is_given=is_given)


def from_file(path: Path, *, is_given: bool = False) -> Secret:
    """Read a secret from a file; white space around it does not count.

    Raises:
        SecretSourceError: it cannot be read, is empty, or a placeholder.
    """
    place = f"the file {path}"
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_SECRET_FILE + 1)
        text = content.decode("utf-8")
    except OSError as error:
        raise SecretSourceError(
            f"{place} cannot be read: {error.strerror or error}",
            "a relative path starts at the settings file that names it",
            is_absent=True,
        ) from error
    except UnicodeDecodeError as error:
        raise SecretSourceError(
            f"{place} is not text in UTF-8", "write the secret as plain text"
        ) from error
    if len(content) > LARGEST_SECRET_FILE:
        raise SecretSourceError(
            f"{place} is longer than {LARGEST_SECRET_FILE} bytes",
            "name a file that holds the secret and nothing else",
        )
    return checked(text, place, is_given=is_given)


def open_to_others(path: Path) -> bool:
    """Tell whether other users of this machine may read or write a file."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return bool(mode & (stat.S_IRWXG | stat.S_IRWXO))


def checked(text: str, place: str, *, is_given: bool = False) -> Secret:
    """Make a secret of what was found at `place`, unless it cannot be one.

    Args:
        is_given: whether somebody else made it, who will check it: a provider's key,
            a platform's token. Then it may be short and easy to guess.

    Raises:
        SecretSourceError: it is blank, a placeholder, or too short.
    """
    value = text.strip()
    if not value:
        raise SecretSourceError(f"{place} is empty", "put the real secret there")
    if is_placeholder(value):
        raise SecretSourceError(
            f"{place} holds a placeholder, not a secret", "put the real secret there"
        )
    if is_given:
        return Secret(value, place)
    if is_guessed(value):
        raise SecretSourceError(
            f"{place} holds what anybody would guess", "make a secret of its own"
        )
    if len(value) < SHORTEST_SECRET:
        raise SecretSourceError(
            f"{place} is shorter than {SHORTEST_SECRET} characters",
            "a short secret is soon guessed; make a longer one",
        )
    return Secret(value, place)


def is_placeholder(value: str) -> bool:
    """Tell whether a value is one that examples and templates are full of."""
    return plain(value) in PLACEHOLDERS or (len(value) > 1 and is_one_character(value))


def is_guessed(value: str) -> bool:
    """Tell whether a value is a word that many people choose, or hardly any."""
    return plain(value) in GUESSED or is_one_character(value)


def is_one_character(value: str) -> bool:
    """Tell whether a value repeats one character, as `xxxx` and `sk-000` do."""
    return len(set(plain(value).removeprefix("sk-"))) <= 1


def plain(value: str) -> str:
    """Write a value without quotes and brackets, as the lists above have it."""
    return value.strip("\"'<>[]{}$ ").lower().replace("_", "-").replace(" ", "-")
