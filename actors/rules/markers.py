"""What a model writes for the runtime and not for people: a whole text taken apart.

Pure and total. `Sanitizer` takes out what people are not to see, `read` makes actions
of it, and here is decided which of them count: what the agent may ask for, what
somebody carries out, and how many of them. The rest is dropped with a reason.

Only model text is ever parsed. What is not well formed is not carried out, is not
shown, and is reported.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

import msgspec

from actors.rules import actions, tags
from actors.rules.actions import Action, Delegation
from actors.rules.control_words import plain, says_well
from actors.rules.enveloped import EnvelopeSanitizer, open_envelope
from actors.rules.reading import BadShape, read
from actors.rules.sanitizer import Sanitizer

if TYPE_CHECKING:
    from actors.messages import Role
    from actors.rules.blocks import Block

MAX_DELEGATIONS = 8
"""Most delegations of one text; what is more is reported and not carried out."""

MAX_ACTIONS = 32
"""Most other actions of one text, likewise."""

MAX_REPORTED = 16
"""About how many entries of `Parsed.dropped`; `Parsed.dropped_total` counts all."""

_EXCERPT = 80

DropReason = (
    BadShape
    | Literal[
        "too_many",
        "not_allowed",
        "stray_end",
        "tool_call",
        "thinking",
        "role_tag",
        "tool_json",
        "narration",
    ]
)

EXPLANATIONS: dict[DropReason, str] = {
    "unclosed": "it was not closed with [/{name}]",
    "nested": "one {what} stood inside another",
    "bad_name": "it names no agent",
    "no_task": "it says no task",
    "empty": "it says nothing",
    "bad_parts": "it lacks a part, or has one too many",
    "bad_value": "one of its parts makes no sense",
    "bad_body": "what it holds could not be read",
    "too_long": "it is too long",
    "quoted": "it stood in code, as an example does",
    "too_many": "one answer may hold {most} {what}s",
    "not_allowed": "this agent may not do that",
}
"""What people are told."""

_UNTOLD: frozenset[tags.Family] = frozenset(
    {"memory", "state", "reward", "lesson", "personality"}
)
"""Nobody was promised these; they are counted, and not talked about."""


ALL_WELL = "HEARTBEAT_OK"
"""The control word by which an agent says that it found nothing to do (F266)."""

DONE = "done"
"""The control word by which an agent says that nothing more is to be said (F265)."""


class Egress(msgspec.Struct, frozen=True):
    """What of an agent's text counts, and what of it is shown."""

    families: frozenset[tags.Family] = frozenset(tags.FAMILIES)
    """Which marks it may use."""

    hides_narration: bool = False
    """Whether lines go in which it tells what it will look up (F262)."""

    opens_envelopes: bool = False
    """Whether it answers in objects with `text`, `thought` and `actions` (F264)."""


EVERYTHING = Egress()


def cleaner(egress: Egress) -> Sanitizer | EnvelopeSanitizer:
    """Give what cleans a text as it streams, just as `parse` would the whole of it."""
    if egress.opens_envelopes:
        return EnvelopeSanitizer(hides_narration=egress.hides_narration)
    return Sanitizer(hides_narration=egress.hides_narration)


class Dropped(msgspec.Struct, frozen=True):
    """Something taken out of the text and not carried out."""

    reason: DropReason
    excerpt: str
    """Its beginning, for logs."""

    name: str = ""
    """Of the tag or mark; empty for what never is carried out."""


class Parsed(msgspec.Struct, frozen=True):
    """A model's text taken apart."""

    visible: str
    """For people; without blanks at both ends if anything was taken out."""

    actions: tuple[Action, ...] = ()
    """In the order in which they are to be carried out (F235)."""

    dropped: tuple[Dropped, ...] = ()
    """The first `MAX_REPORTED`, and the first for each reason, in order."""

    dropped_total: int = 0
    controls: tuple[str, ...] = ()
    """Control words it held, each once: `NO_REPLY`, `DONE`, …"""

    @property
    def delegations(self) -> tuple[Delegation, ...]:
        """What other agents are to do."""
        return tuple(each for each in self.actions if isinstance(each, Delegation))

    @property
    def others(self) -> tuple[Action, ...]:
        """All actions but delegations."""
        return tuple(each for each in self.actions if not isinstance(each, Delegation))

    def tally(self) -> list[tuple[str, str, int]]:
        """Say how often which family had which outcome, all words bounded."""
        seen: list[tuple[str, str]] = [
            (actions.FAMILY[type(each)], "ok") for each in self.actions
        ]
        seen += [(tags.FAMILY_OF.get(x.name, "none"), x.reason) for x in self.dropped]
        seen += [("control", word.lower()) for word in self.controls]
        tally = Counter[tuple[str, str]](seen)
        tally["none", "unlisted"] = self.dropped_total - len(self.dropped)
        return [(*each, count) for each, count in tally.items() if count]

    @property
    def notice(self) -> str:
        """What to tell people about what was not carried out; empty if nothing."""
        return "\n".join(dict.fromkeys(_notices(self.dropped)))

    @property
    def is_withheld(self) -> bool:
        """True if the model says that it has nothing to say (F263, F266).

        What little is left around its control word does not count: no letter, no
        digit, no sign that means something.
        """
        nothing = not any(map(_has_meaning, self.visible))
        return bool(self.controls) and nothing and not (self.actions or self.notice)

    def says_nothing(self, most: int) -> bool:
        """True if it is withheld, or a heartbeat's few words that all is well.

        Args:
            most: characters that may stand beside `HEARTBEAT_OK`; 0: none.
        """
        is_little = len(self.visible.strip()) <= most and (
            ALL_WELL in map(plain, self.controls) or says_well(self.visible)
        )
        is_all = not (self.actions or self.notice)
        return self.is_withheld or (is_little and is_all)

    @property
    def is_silent(self) -> bool:
        """True if there is nothing to show, to carry out or to tell."""
        has_words = bool(self.visible.strip()) and not self.is_withheld
        return not (has_words or self.actions or self.notice)


def _has_meaning(letter: str) -> bool:
    return letter.isalnum()


def _notices(dropped: tuple[Dropped, ...]) -> list[str]:
    """Say for each kind of mark what was wrong, all reasons in one sentence."""
    why: dict[str, dict[str, None]] = {}
    for each in dropped:
        family = tags.FAMILY_OF.get(each.name)
        if family is None or family in _UNTOLD or each.reason not in EXPLANATIONS:
            continue
        what = "delegation" if family == "delegation" else each.name
        most = MAX_DELEGATIONS if family == "delegation" else MAX_ACTIONS
        told = EXPLANATIONS[each.reason].format(name=each.name, what=what, most=most)
        why.setdefault(what, {})[told] = None
    return [
        f"A delegation was not passed on: {'; '.join(told)}."
        if what == "delegation"
        else f"{what} was not carried out: {'; '.join(told)}."
        for what, told in why.items()
    ]


def ends(word: str) -> bool:
    """Whether a control word says that nothing more is to be said (F265)."""
    return word.strip("[]").casefold() == DONE


def parse(text: str, role: Role, egress: Egress = EVERYTHING) -> Parsed:
    """Take a whole text apart.

    Args:
        text: what was said, of any length.
        role: who said it; only an assistant's text holds markers.
        egress: what of it counts.
    """
    if role != "assistant":
        return Parsed(text)
    controls: tuple[str, ...] = ()
    envelope = open_envelope(text) if egress.opens_envelopes else None
    if envelope is not None:
        text, controls = envelope.text, envelope.controls
    blocks: list[Block] = []
    sanitizer = Sanitizer(blocks, hides_narration=egress.hides_narration)
    visible = sanitizer.feed(text) + sanitizer.finish()
    if not blocks:
        return Parsed(text, controls=controls)
    found = _Found(text, egress)
    for block in sorted(blocks, key=_start):
        found.take(block)
    return Parsed(
        visible.strip(),
        tuple(sorted(found.actions, key=actions.rank)),
        tuple(found.dropped),
        found.total,
        tuple(dict.fromkeys((*controls, *found.controls))),
    )


def _start(block: Block) -> int:
    return block.start


class _Found:
    """What was found in one text so far."""

    def __init__(self, text: str, egress: Egress) -> None:
        self._text = text
        self._egress = egress
        self._left = {True: MAX_DELEGATIONS, False: MAX_ACTIONS}
        self._reasons: set[tuple[DropReason, str]] = set()
        self.actions: list[Action] = []
        self.dropped: list[Dropped] = []
        self.controls: dict[str, None] = {}
        self.total = 0

    def take(self, block: Block) -> None:
        """Take up one block, in the order of the text."""
        if block.kind == "control":
            self.controls[block.name] = None
        elif block.kind == "tag" or block.kind == "mark":  # noqa: PLR1714 narrows
            self._take_mark(block)
        else:
            self._drop(block, block.kind)

    def _take_mark(self, block: Block) -> None:
        found = read(block, self._text)
        if isinstance(found, str):
            self._drop(block, found)
            return
        family = tags.FAMILY_OF[block.name]
        is_delegation = isinstance(found, Delegation)
        if family not in self._egress.families:
            self._drop(block, "not_allowed")
        elif not self._left[is_delegation]:
            self._drop(block, "too_many")
        else:
            self._left[is_delegation] -= 1
            self.actions.append(found)

    def _drop(self, block: Block, reason: DropReason) -> None:
        self.total += 1
        known = (reason, block.name)
        if self.total <= MAX_REPORTED or known not in self._reasons:
            excerpt = block.text or self._text[block.start : block.end]
            self.dropped.append(Dropped(reason, excerpt[:_EXCERPT], block.name))
        self._reasons.add(known)
