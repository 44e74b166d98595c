"""How the page writes: languages, times, numbers, and the words for states; pure.

Templates and views write English, `_("{count} more", count=…)`; the catalogues
`config/locale/<language>/LC_MESSAGES/page.po` translate it. What comes from below the
page as an English sentence, filled in already (why a message cannot be dropped, what is
wrong with a setting), is translated here, too: the catalogue has it with places, and
what stands in them is taken out of the sentence. A text without a
translation stays English. What the page is to look like (`PageLook`) is in a cookie, as
it is no secret and concerns this browser alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Literal, cast, get_args

import msgspec
import polib

from actors.rules.text.languages import NAMES
from connectors.config.shipped import shipped_settings

SOURCE = "en"
CATALOGUE = "LC_MESSAGES/page.po"
COMMANDS = "LC_MESSAGES/callboard.po"
"""What commands and notices say in chats; the page shows some of it, too."""

Theme = Literal["auto", "light", "dark"]
Zone = Literal["here", "utc"]
"""`here`: the browser's own time zone; without a script both are UTC."""

BOUND = "\u00a0"
"""Between a number and its unit: no line ends there."""

UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))

SEPARATORS = {
    "de": (".", ","),
    "es": (".", ","),
    "pt": (".", ","),
    "fr": ("\u202f", ","),
}
"""Between thousands, and before decimals, where they are not as in English."""

DATES = {
    "de": "%d.%m.%Y %H:%M:%S",
    "es": "%d/%m/%Y %H:%M:%S",
    "fr": "%d/%m/%Y %H:%M:%S",
    "pt": "%d/%m/%Y %H:%M:%S",
}
"""How a time is written, where it is not as ISO 8601 has it."""

STATES: dict[str, tuple[str, str]] = {
    "accepted": ("waiting", "busy"),
    "active": ("active", "good"),
    "answered": ("answered", "good"),
    "approved": ("approved", "good"),
    "asks": ("asks to be let in", "warn"),
    "bad": ("not genuine", "bad"),
    "begun": ("begun", "good"),
    "cancelled": ("stopped", "soft"),
    "changed": ("changed", "good"),
    "closed": ("ended", "soft"),
    "command": ("command", "soft"),
    "compacted": ("summarised", "soft"),
    "completed": ("answered", "good"),
    "dead": ("failed", "bad"),
    "deferred": ("put off", "warn"),
    "delivery": ("sent out", "soft"),
    "denied": ("denied", "soft"),
    "down": ("restarting", "warn"),
    "draft_begun": ("first words shown", "soft"),
    "draft_ended": ("first words over", "soft"),
    "dropped": ("dropped", "soft"),
    "failed": ("failed", "bad"),
    "forgotten": ("forgotten", "soft"),
    "flushed": ("gone through for facts", "soft"),
    "heard": ("asked", "busy"),
    "interrupted": ("interrupted", "soft"),
    "killed": ("killed", "warn"),
    "leave": ("approval", "warn"),
    "let_in": ("let in", "good"),
    "not running": ("not running", "bad"),
    "not_addressed": ("not meant for an agent", "soft"),
    "ok": ("done", "good"),
    "on another node": ("on another node", "good"),
    "over": ("nobody there any more", "soft"),
    "passivating": ("going to sleep", "soft"),
    "paused": ("paused", "warn"),
    "pending": ("waiting", "busy"),
    "replied": ("answered", "good"),
    "reset": ("began anew", "soft"),
    "resumed": ("resumed", "good"),
    "retried": ("tried again", "good"),
    "round": ("model asked", "soft"),
    "running": ("running", "good"),
    "sending": ("being sent", "busy"),
    "sent": ("sent", "good"),
    "skipped": ("left out", "soft"),
    "starting": ("starting", "warn"),
    "stopping": ("stopping", "warn"),
    "tool": ("tool", "soft"),
    "unauthorised": ("refused", "bad"),
    "unknown": ("perhaps sent", "warn"),
    "waits": ("waiting", "busy"),
}
"""For people: the word for a state, and its tone, which is a class of the style sheet.
A state that is not here is written as it is, in tone `soft`."""


REASONS = {
    "bad_key": "a program without a valid key",
    "budget": "a budget is used up",
    "broken": "an internal error; see the log",
    "by hand": "dropped by hand",
    "command": "a command",
    "idle": "nothing was to be said",
    "interrupted": "something newer came in between",
    "lost": "the process ended in the middle of it",
    "model": "the model could not answer",
    "not_addressed": "no agent was meant",
    "refused": "the model refused to answer",
    "reminder": "reminder",
    "silent": "nothing was to be said",
    "stopped": "somebody stopped it",
    "stranger": "a stranger",
    "timeout": "it took too long",
    "unavailable": "the model did not answer",
    "unrouted": "no agent hears this chat",
    "withheld": "a rule held it back",
}
"""What reasons mean, for people; others are shown as they are."""

PLACE = re.compile(r"\{(\w+)\}")

TOLD = frozenset({"why", "what", "state"})
"""Places in which words of ours stand, not those of people."""

MOST_CHARACTERS = 2_000
"""Of a sentence from below that is translated; longer ones are no sentences."""

MOST_WITHIN = 4
"""Sentences that stand in each other's places, and are translated."""


class PageLook(msgspec.Struct, frozen=True):
    """What one browser wants the page to look like."""

    theme: Theme = "auto"
    language: str = ""
    """Empty: what the browser asks for in `Accept-Language`."""

    zone: Zone = "here"

    @classmethod
    def read(cls, text: str) -> PageLook:
        """Read the cookie; what cannot be read is as usual."""
        theme, _, rest = text.partition(".")
        language, _, zone = rest.partition(".")
        return cls(
            cast("Theme", theme) if theme in get_args(Theme) else "auto",
            language if language in NAMES else "",
            cast("Zone", zone) if zone in get_args(Zone) else "here",
        )

    def in_zone(self, zone: str) -> PageLook:
        """Have times in another zone, if there is one of that name."""
        if zone not in get_args(Zone):
            return self
        return msgspec.structs.replace(self, zone=cast("Zone", zone))

    @property
    def text(self) -> str:
        """Write it for the cookie."""
        return f"{self.theme}.{self.language}.{self.zone}"


def wanted(accept: str, known: Mapping[str, object]) -> str:
    """Choose a language by `Accept-Language`, in its order; English without one.

    Source: RFC 9110 12.5.4; browsers list languages in falling order.
    """
    for part in accept.split(",")[:20]:
        short = part.partition(";")[0].strip().casefold().partition("-")[0]
        if short == SOURCE or short in known:
            return short
    return SOURCE


class SafeHtml(str):
    """HTML that templates do not escape."""

    __slots__ = ()

    def __html__(self) -> str:
        """Give it as HTML."""
        return self


QUOTED = re.compile("`([^`]+)`")


def with_code(text: str) -> SafeHtml:
    """Write a text as HTML, with what stands in backticks as code."""
    return SafeHtml(QUOTED.sub(r"<code>\1</code>", escape(text)))


class Words:
    """Texts, times and numbers in one language.

    Args:
        language: ISO 639-1.
        texts: translations, by the English text.
    """

    def __init__(
        self, language: str = SOURCE, texts: Mapping[str, str] | None = None
    ) -> None:
        self.language = language
        self.name = NAMES.get(language, language)
        """What it calls itself."""

        self._texts = texts or {}

    def say(self, text: str, **values: object) -> str:
        """Translate a text, and fill its places in.

        Without values it may be one from below the page, filled in already.
        """
        if not values:
            return self._heard(text)
        return (self._texts.get(text) or text).format(**values)

    def _heard(self, text: str, within: int = MOST_WITHIN) -> str:
        """Translate a sentence whose places are filled in; others stay as they are."""
        if told := self._texts.get(text):
            return told
        if not within or len(text) > MOST_CHARACTERS or " " not in text:
            return text
        for shape, translation in self._shapes:
            if found := shape.fullmatch(text):
                values = {
                    name: self._part(value, within - 1) if name in TOLD else value
                    for name, value in found.groupdict().items()
                }
                return translation.format(**values)
        return text

    def _part(self, text: str, within: int) -> str:
        """Translate a part of a sentence: a state, or a sentence itself."""
        return self.state(text) if text in STATES else self._heard(text, within)

    @cached_property
    def _shapes(self) -> list[tuple[re.Pattern[str], str]]:
        """The texts that have places, as patterns; those that say most come first."""
        found = [(sum(map(len, PLACE.split(text)[::2])), text) for text in self._texts]
        found.sort(key=lambda each: -each[0])
        return [
            (shape_of(text), self._texts[text])
            for size, text in found
            if size >= LEAST_WORDS and PLACE.search(text)
        ]

    def when(self, at: float | str) -> str:
        """Write a time as UTC; 0: never."""
        if at == 0:
            return self.say("never")
        shape = DATES.get(self.language, "%Y-%m-%d %H:%M:%S")
        return f"{moment_of(at).strftime(shape)} UTC"

    def number(self, value: float) -> str:
        """Write a number, two decimals at most."""
        text = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
        return self._separated(text)

    def decimal(self, value: float, places: int = 1) -> str:
        """Write a number with that many decimals."""
        return self._separated(f"{value:,.{places}f}")

    def money(self, dollars: float) -> str:
        """Write US dollars; small amounts with four decimals, as calls cost little."""
        places = 2 if dollars >= 1 or dollars == 0 else 4
        return "$" + self.decimal(dollars, places)

    def lasting(self, seconds: float) -> str:
        """Write a duration in its two largest units."""
        left = max(0, int(seconds))
        said: list[str] = []
        for size, unit in UNITS:
            if left >= size and len(said) < 2:
                said.append(f"{left // size}{BOUND}{self.say(unit)}")
                left %= size
        return " ".join(said) or f"{left}{BOUND}s"

    def brief(self, seconds: float) -> str:
        """Write how long something took: `340 ms`, `2.4 s`, `3 min`."""
        if seconds < 0.9995:
            return f"{self.number(round(1000 * seconds))}{BOUND}ms"
        return (
            f"{self.decimal(seconds)}{BOUND}s"
            if seconds < 120
            else self.lasting(seconds)
        )

    def state(self, name: str) -> str:
        """Give the word for a state."""
        return self.say(STATES[name][0] if name in STATES else name.replace("_", " "))

    def reason(self, name: str) -> str:
        """Give the words for a reason."""
        return self.say(REASONS.get(name, name))

    def part(self, label: str) -> str:
        """Translate what an actor is called: `anna · conversations`."""
        owner, between, part = label.rpartition(" · ")
        return f"{owner}{between}{self.say(part)}"

    def _separated(self, text: str) -> str:
        thousands, point = SEPARATORS.get(self.language, (",", "."))
        return text.translate({ord(","): thousands, ord("."): point})


LEAST_WORDS = 6
"""Characters that a text has beside its places, to be known by them."""


def shape_of(text: str) -> re.Pattern[str]:
    """Make the pattern of a text with places: what stands in them, by their names.

    A place ends where the words behind it come first. No other end is tried (the groups
    are atomic), so that no text, whoever wrote it, takes long to look at.
    """
    first, *rest = PLACE.split(text)
    pieces, known = [re.escape(first)], set[str]()
    for name, behind in zip(rest[::2], rest[1::2], strict=True):
        place = f"(?P={name})" if name in known else f"(?P<{name}>.+?)"
        known.add(name)
        pieces.append(f"(?>{place}{re.escape(behind)})")
    pieces[-1] = pieces[-1].replace("(?>", "(?:", 1)
    return re.compile("".join(pieces), re.DOTALL)


def tone(name: str) -> str:
    """Give the tone of a state."""
    return STATES[name][1] if name in STATES else "soft"


IN_LIST = 300
"""Characters of a text that one entry of a list shows."""


def beginning(text: str, most: int = IN_LIST) -> str:
    """Give the beginning of a text, which ends in "…" if it is not the whole."""
    return text if len(text) <= most else f"{text[:most].rstrip()}…"


def iso(at: float | str) -> str:
    """Write a time in ISO format; scripts show it in local time."""
    return moment_of(at).isoformat(timespec="milliseconds")


def moment_of(at: float | str) -> datetime:
    """Read a time: Unix seconds, or ISO 8601 with an offset."""
    if isinstance(at, str):
        return datetime.fromisoformat(at).astimezone(UTC)
    return datetime.fromtimestamp(at, UTC)


def read_words(folder: Path | None = None) -> dict[str, Words]:
    """Read all catalogues, by language; English needs none.

    Args:
        folder: where they are; None: those that come with the program.
    """
    folder = folder or shipped_settings() / "locale"
    found = {SOURCE: Words()}
    for path in sorted(folder.glob(f"*/{CATALOGUE}")):
        language = path.parent.parent.name
        texts = read_texts(path.parent.parent / COMMANDS) | read_texts(path)
        found[language] = Words(language, texts)
    return found


def read_texts(path: Path) -> dict[str, str]:
    """Read one catalogue; one that is not there is empty."""
    if not path.exists():
        return {}
    entries = polib.pofile(str(path), encoding="utf-8").translated_entries()
    return {each.msgid: each.msgstr for each in entries if not each.fuzzy}
