"""Texts with places for what a regular expression captured.

Pure. Written as `{1}`, `{name}` or `{0}` for all that matched; a brace meant as a
brace is doubled.
"""

from __future__ import annotations

import re
import string
from typing import cast

# At the end of a capture also the beginning of one, which what follows could end.
MARKER = re.compile(r"\[(?=/?[A-Za-z_]+[:\]]|/?[A-Za-z_]*\Z)")


class ReplyTemplate:
    """A text with captures to fill in.

    Args:
        text: the text, with `{1}` and `{name}` for captures, `{{` for a brace.
        pattern: where the captures come from.

    Raises:
        ValueError: the pattern has no such capture, or a brace stands alone.
    """

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        self._parts: list[tuple[str, int | None]] = []
        try:
            parsed = list(string.Formatter().parse(text))
        except ValueError as error:
            raise ValueError(
                f"{text!r}: {error}; write {{{{ for a brace that is no capture"
            ) from error
        for literal, field, spec, conversion in parsed:
            if spec or conversion:
                raise ValueError(f"{text!r}: a capture is only its name in braces")
            self._parts.append(
                (literal, None if field is None else capture(field, pattern))
            )

    def render(self, match: re.Match[str]) -> str:
        """Fill in the captures; one that took no part in the match is empty."""
        return "".join(
            literal if group is None else literal + (match[group] or "")
            for literal, group in self._parts
        )

    def render_words(self, match: re.Match[str]) -> str:
        """Fill in the captures for people to read.

        Why not as they are: what is said is searched for markers such as
        `[DELEGATE:ben]`, and those must come from the script, not from somebody
        who calls himself that.
        """
        return "".join(
            literal if group is None else literal + unmarked(match[group] or "")
            for literal, group in self._parts
        )


class ArgumentsTemplate:
    """A JSON value with captures to fill into its texts.

    Args:
        value: the value; other than texts, tables and lists stay as they are.
        pattern: where the captures come from.

    Raises:
        ValueError: as for `ReplyTemplate`.
    """

    def __init__(self, value: object, pattern: re.Pattern[str]) -> None:
        self._value = value
        if isinstance(value, str):
            self._value = ReplyTemplate(value, pattern)
        elif isinstance(value, dict):
            table = cast("dict[str, object]", value)
            self._value = {
                key: ArgumentsTemplate(each, pattern) for key, each in table.items()
            }
        elif isinstance(value, list):
            items = cast("list[object]", value)
            self._value = [ArgumentsTemplate(each, pattern) for each in items]

    def render(self, match: re.Match[str]) -> object:
        """Fill in the captures."""
        value = self._value
        if isinstance(value, ReplyTemplate):
            return value.render(match)
        if isinstance(value, dict):
            table = cast("dict[str, ArgumentsTemplate]", value)
            return {key: each.render(match) for key, each in table.items()}
        if isinstance(value, list):
            items = cast("list[ArgumentsTemplate]", value)
            return [each.render(match) for each in items]
        return value


def capture(field: str, pattern: re.Pattern[str]) -> int:
    """Find the number of a capture.

    Raises:
        ValueError: the pattern has none of that name or number.
    """
    number = int(field) if field.isascii() and field.isdigit() else -1
    number = pattern.groupindex.get(field, number)
    if not 0 <= number <= pattern.groups:
        known = ["{0}", *(f"{{{n}}}" for n in range(1, pattern.groups + 1))]
        known += [f"{{{name}}}" for name in pattern.groupindex]
        raise ValueError(
            f"the pattern captures no {{{field}}}; known: {', '.join(known)}"
        )
    return number


def unmarked(text: str) -> str:
    """Open every `[NAME]` and `[NAME:` with a round bracket instead."""
    return MARKER.sub("(", text)
