"""Removes secrets and phone numbers from text that is stored in memory.

Pure. Secrets of the settings are removed elsewhere, by value. This module recognises
what looks like a secret: keys by their vendors' prefixes, tokens, private keys,
labelled passwords, long random strings, card and phone numbers. It rather removes too
much: a fact without its number is still a fact, and a remembered key is a leak.
`AuditRedaction` says what the audit log keeps of messages and names.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

KEY = "[key]"
PASSWORD = "[password]"  # noqa: S105  its replacement
PHONE = "[phone]"
CARD = "[card]"

LONGEST = 100_000
"""Most characters examined; memory stores fewer."""

MOST_LOGGED = 1_000
"""Most characters examined for a log line."""

SHOWN = 250
"""Most characters of a text in a log line."""

# Source: key prefixes of OpenAI, Anthropic, GitHub, GitLab, Slack, Google, AWS, Stripe,
# Hugging Face, SendGrid, npm, PyPI, Telegram, Discord; JWT.
KNOWN = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_-]{16,}"
    r"|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|glpat-[A-Za-z0-9_-]{16,}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}"
    r"|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}"
    r"|(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{10,}"
    r"|hf_[A-Za-z0-9]{20,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
    r"|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}"
    r"|\d{8,10}:[A-Za-z0-9_-]{35}"
    r"|[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
    r")"
)
PEM = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
BEARER = re.compile(r"(?i:\b(bearer|basic)) +[A-Za-z0-9._~+/=-]{8,}")
NAMED = re.compile(
    r"(?i:\b(pass(?:word|phrase|wd)?|pwd|contrase[nñ]a|senha|passwort|kennwort"
    r"|mot de passe|wachtwoord|пароль|api[ _-]?key|access[ _-]?key|secret(?:[ _-]?key)?"
    r"|(?:access[ _-]|auth[ _-]|bot[ _-])?token|pin|clave))"
    r"([\"']?\s*(?:[:=]|\b(?:is|es|ist|est|lautet|was)\b)\s*[:=]?\s*)"
    r"(\"[^\"\n]{3,}\"|'[^'\n]{3,}'|(?<=[:=] )(?!\[)[^\n,;]{3,}|(?!\[)[^\s,;]{3,})"
)
ADDRESS = re.compile(r"(\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{1,100}):[^\s@/]{1,200}@")
LONG = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{32,}={0,2}(?![A-Za-z0-9+/_-])")
DIGITS = re.compile(
    r"(?<![\w.,/-])(?:\+|00)?\(?\d(?:[\d\s()\-/]|\.(?!\.)){6,24}\d(?![\w])"
)
# Source: RFC 9562 4, the text of a UUID; often only its beginning is written.
UUID = re.compile(
    r"(?=[\d-]*[a-fA-F])[\da-fA-F]{8}(?:-[\da-fA-F]{4}){1,3}(?:-[\da-fA-F]{1,12})?(?!\w)"
)
# Two in a hundred short hashes have no letter; then only the label tells.
CALLED_HASH = re.compile(
    r"(?i:\b(?:commit|hash|sha-?\d{0,3}|rev|revision|checksum|digest|u?uid|guid|blob"
    r"|tree)(?: id)?[:=#]? ?)\Z"
)
MOST_CALLED = 24
"""Characters before a number that are searched for a label."""

DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:\s.*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}(?:\s.*)?"
    r"|\d{4}\s*-\s*\d{4}"
)
GROUPED = re.compile(r"\d{1,3}(?:[.\s]\d{3})+(?:\.\d+)?|\d+\.\d+")


def redacted(text: str) -> str:
    """Return a text without secrets and phone numbers."""
    text = PEM.sub(KEY, text[:LONGEST])
    text = KNOWN.sub(KEY, text)
    text = BEARER.sub(rf"\1 {KEY}", text)
    text = ADDRESS.sub(rf"\1:{PASSWORD}@", text)
    text = NAMED.sub(_named, text)
    text = LONG.sub(_long, text)
    return DIGITS.sub(_number, text)


def excerpt(text: str) -> str:
    """Return the beginning of a text for a log line, without secrets."""
    kept = redacted(text[:MOST_LOGGED])
    if len(text) <= MOST_LOGGED:
        return kept
    # Why not all of it: a secret that is cut off at the end is not recognised.
    return f"{kept[:SHOWN]}… (+{len(text) - SHOWN} characters)"


def _named(match: re.Match[str]) -> str:
    """Remove labelled secrets, but not the end of "the secret is patience"."""
    name, joint, value = match[1], match[2], match[3]
    is_told = joint.strip()[:1] in (":", "=") or not value.strip("\"'.!?").isalpha()
    is_password = not name.casefold().startswith(("secret", "token", "pin", "clave"))
    return f"{name}{joint}{PASSWORD}" if is_told or is_password else match[0]


def _long(match: re.Match[str]) -> str:
    """Remove long random strings: mixed case or hex, with digits."""
    text = match[0]
    has_digits = any(c.isdigit() for c in text)
    is_mixed = text != text.lower() and text != text.upper()
    is_hex = all(c in "0123456789abcdefABCDEF-" for c in text)
    return KEY if has_digits and (is_mixed or is_hex) and "/" not in text[:1] else text


def _number(match: re.Match[str]) -> str:
    """Remove phone and card numbers, but no dates, sums and short numbers."""
    text = match[0]
    digits = [int(c) for c in text if c.isdigit()]
    if is_name_of_thing(match):
        return text
    if 13 <= len(digits) <= 19 and _is_card(digits):
        return CARD
    bare = text.strip()
    if DATE.fullmatch(bare) or GROUPED.fullmatch(bare):
        return text
    is_international = bare.startswith(("+", "00"))
    # Source: ITU-T E.164 6: 15 digits without the dialling prefix.
    most = 15 + 2 * bare.startswith(("00", "(00")) + ("(0)" in bare)
    is_phone = 7 <= len(digits) <= most and (is_international or len(digits) >= 8)
    # Why also seven digits in groups: local numbers, as 555-0123 with an area code.
    return PHONE if is_phone or (len(digits) == 7 and not bare.isdigit()) else text


def is_name_of_thing(match: re.Match[str]) -> bool:
    """Return whether digits are (part of) a hash or a UUID."""
    start, text = match.start(), match.string
    if UUID.match(text, start):
        return True
    before = text[max(0, start - MOST_CALLED) : start]
    return match[0].isdigit() and CALLED_HASH.search(before) is not None


def _is_card(digits: list[int]) -> bool:
    """Verify the check digit of a card number.

    Source: ISO/IEC 7812-1, annex B (Luhn).
    """
    doubled = [2 * d - 9 if d > 4 else 2 * d for d in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


class AuditRedaction(msgspec.Struct, frozen=True):
    """Redacts secrets from everything that the audit log keeps."""

    redact: Callable[[str], str] = str
    """Removes the values of secrets from a text."""

    has_texts: bool = True
    """Whether message texts are kept; sender, chat and time always are."""
