"""Fifty people with secrets, and a model that writes down all it hears.

Each thing that is said holds a token which tells where it was said and by whom, so that
any text can be asked whose secrets it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from actors.messages.inbound import ModelRequest
from tests.fakes.company.company import Says, call, heard
from tests.fakes.models.summing import task_of

TOKEN = re.compile(r"(d|g\d)x(\d\d)x(\d\d)z", re.IGNORECASE)


class Secret(msgspec.Struct, frozen=True):
    """What a token says."""

    place: str
    """`d` in private, `g3` in a group."""

    speaker: int

    def may_be_told(self, place: str, reader: int) -> bool:
        """Whether it may be heard somewhere; in private one's own words may."""
        return self.speaker == reader if place == "d" else self.place == place


def token(place: str, speaker: int, number: int) -> str:
    return f"{place}x{speaker:02}x{number:02}z"


def secrets(text: str) -> set[Secret]:
    """Find all secrets in a text."""
    return {Secret(p.lower(), int(who)) for p, who, _ in TOKEN.findall(text)}


def whole(request: ModelRequest) -> str:
    """Give all that a model is shown."""
    return msgspec.json.encode(request).decode()


def marks(secret: str) -> str:
    """Write down one secret in every way there is."""
    return "\n".join(
        (
            f"[MEMORY:sticky] the secret is {secret} [/MEMORY]",
            f"[MEMORY:user_preference] likes the secret {secret} [/MEMORY]",
            f"[MEMORY:profile] owns the secret {secret} [/MEMORY]",
            f"[STATE:secret] {secret} [/STATE]",
            f"LESSON: secret|keep {secret}",
            f"REWARD: +1|secret|liked {secret}",
            f"PERSONALITY: speak of {secret}",
            f"SCHEDULE: remember {secret} | in 20 minutes",
        )
    )


def _noted(task: str, seen: Iterable[str]) -> str | None:
    """Answer what is no talk, with all there is to tell."""
    if task == "summary":
        return f"They spoke of {' '.join(seen)}"
    if task == "facts":
        return "\n".join(f"[MEMORY:sticky] noted {x} [/MEMORY]" for x in seen)
    return None


def gossip(request: ModelRequest) -> str | Says:
    """Search, keep, hand on and tell all, in turn."""
    seen = [each[0] for each in TOKEN.finditer(whole(request))]
    if (noted := _noted(task_of(request), dict.fromkeys(seen))) is not None:
        return noted
    last = request.lines[-1]
    if last.role == "tool":
        told = TOKEN.search("".join(x.text for x in request.lines if x.role == "user"))
        return f"It says: {last.text}\n{marks(told[0]) if told else ''}"
    found = TOKEN.search(heard(request))
    if found is None:
        return "nothing"
    turns = int(found[3]) % 5
    if turns == 1 and request.tools:
        return Says(calls=(call("memory_search", query="secret", limit=20),))
    if turns == 2 and request.tools:
        return Says(calls=(call("save_memory", text=f"a secret {found[0]}"),))
    handed = f"\n[DELEGATE:ben] {found[0]} [/DELEGATE]" if turns == 3 else ""
    is_first = request.agent == "anna"
    known = " ".join(dict.fromkeys(seen))
    return f"I know {known}\n{marks(found[0])}{handed if is_first else ''}"
