"""Discord's Markdown, and what our bots send with it; pure.

Source: Discord, "Markdown Text 101" and the developers' reference, "Message
Formatting": bold, italics, strikethrough, headings to level 3, lists, quotes by line,
code with its language, named links to http and https. No tables, no rules, no pictures.
A backslash makes a sign literal; it does not make a mention silent, so that a blank of
no width is put into those. Whoever sends must forbid them, too (`allowed_mentions`).

Source of requests: developers' reference, "Create Message". `allowed_mentions` always
forbids all: a model that was talked into `@everyone` calls nobody.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from actors.messages.inbound import SentFile
from connectors.chat.discord.events import number
from connectors.chat.discord.platform import PLATFORM
from connectors.chat.markup.dialect import (
    JOINT,
    Mark,
    MarkupLine,
    Plain,
    WebLink,
    parted,
    prefixed,
    utf16,
)
from connectors.chat.markup.render import rendered
from connectors.chat.requests import Json

MARKS: dict[Mark, tuple[str, str]] = {
    "strong": ("**", "**"),
    "em": ("*", "*"),
    "strike": ("~~", "~~"),
}
SIGNS = re.compile(r"[\\*_~`|\[\]<]")
AT_FIRST = re.compile(
    r"(?P<blanks>\s*)(?:(?P<sign>[#>+-])|(?P<number>\d+)(?P<dot>[.)]))"
)
CALL = re.compile(r"@(?=everyone|here)", re.IGNORECASE)
POINTED = re.compile(r"<(?=[@#:/]|a:|t:|id:)", re.IGNORECASE)
LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,24}")
RUNS = re.compile("`+")
DEEPEST_HEADING = 3


@dataclass(frozen=True)
class Discord(Plain):
    """Discord; see `Dialect`."""

    allowed: frozenset[str] = frozenset()
    """Mentions that stay, as `<@123>`."""

    marks: ClassVar[Mapping[Mark, tuple[str, str]]] = MARKS

    def escape(self, text: str, *, is_first: bool) -> str:
        """Put backslashes before signs, and break mentions."""
        pieces = parted(text, self.allowed)
        said = [
            each if index % 2 else _literal(each, is_first=is_first and index == 0)
            for index, each in enumerate(pieces)
        ]
        return "".join(said)

    def code(self, text: str) -> str:
        """Write code between more backticks than it has in one place."""
        longest = max(map(len, RUNS.findall(text)), default=0)
        mark = "`" * (longest + 1)
        blank = " " if "`" in (text[:1], text[-1:]) or not text.strip() else ""
        return f"{mark}{blank}{silenced(text)}{blank}{mark}"

    def link(self, link: WebLink) -> str:
        """Write a link; a bare address stands between brackets, which end it."""
        href = link.href.replace("@", "%40").replace("(", "%28").replace(")", "%29")
        text = self.escape(link.text, is_first=False)
        if link.href.lower().startswith("mailto:"):  # not followed there
            address = self.escape(link.href.partition(":")[2], is_first=False)
            return text if link.is_bare else f"{text} ({address})"
        return f"<{href}>" if link.is_bare else f"[{text}]({href})"

    def fence(self, text: str, language: str) -> list[str]:
        """Write code with its language."""
        name = language if LANGUAGE.fullmatch(language) else ""
        inner = silenced(text.replace("``", f"`{JOINT}`"))
        return [f"```{name}", *inner.split("\n"), "```"]

    def heading(self, level: int) -> str:
        """Write headings to level 3 as such."""
        return "#" * level + " " if level <= DEEPEST_HEADING else ""

    def quote(self, lines: list[MarkupLine], depth: int) -> list[MarkupLine]:
        """Write a bracket before each line; Discord knows no quotes in quotes."""
        return prefixed(lines, "> " if depth == 0 else "\\> ")

    def plain(self, text: str) -> str:
        """Break mentions, and leave the rest to Discord."""
        return silenced(text)

    def size(self, rendered: str) -> int:
        """Count as strictly as anybody could."""
        return utf16(rendered)


def silenced(text: str) -> str:
    """Break what calls or points to somebody."""
    return POINTED.sub(f"<{JOINT}", CALL.sub(f"@{JOINT}", text))


def _literal(text: str, *, is_first: bool) -> str:
    said = SIGNS.sub(r"\\\g<0>", silenced(text))
    if is_first and (found := AT_FIRST.match(said)):
        at = found.start("sign") if found["sign"] else found.start("dot")
        said = f"{said[:at]}\\{said[at:]}"
    return said


LIMIT = PLATFORM.limits
DIALECT = Discord()

NONCE_CHARS = 25
"""Source: developers' reference; a longer one is refused."""

NOTHING_SEEN = "\u200b"


def words(text: str) -> str:
    """Write a text as Discord shows it; it takes none that is empty."""
    return rendered(text, DIALECT, LIMIT.text).strip() or NOTHING_SEEN


def message(
    text: str, key: str, reply_to: str = "", file: SentFile | None = None
) -> Json:
    """Write a message.

    Args:
        key: the same for the same message; Discord makes one of two with one key.
        reply_to: the id of the message it replies to; empty, or none: of none.
    """
    found: Json = {
        **(changed(text) if file is None else brought(text, file)),
        "nonce": nonce(key),
        "enforce_nonce": True,
    }
    if number(reply_to):
        # Why not refused without it: the question may have been deleted meanwhile.
        found["message_reference"] = {
            "message_id": reply_to,
            "fail_if_not_exists": False,
        }
    return found


def changed(text: str) -> Json:
    """Write what a message is to read from now on."""
    return {
        "content": words(text),
        "allowed_mentions": {"parse": [], "replied_user": False},
    }


def brought(text: str, file: SentFile) -> Json:
    """Write what is said with a file, which may be nothing; Discord shows it by kind.

    Source: developers' reference, "Uploading Files": `id` is the number of the form's
    field, `files[0]`.
    """
    said = rendered(text, DIALECT, LIMIT.caption).strip()
    return {
        **changed(text),
        "content": said,
        "attachments": [{"id": 0, "filename": file.name}],
    }


def nonce(key: str) -> str:
    """Make the key by which Discord knows a message that is sent again."""
    return hashlib.sha256(key.encode()).hexdigest()[:NONCE_CHARS]
