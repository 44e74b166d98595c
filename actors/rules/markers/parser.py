"""What a model writes for the runtime and not for people: a whole text taken apart.

Pure and total. `Sanitizer` takes out what people are not to see, `read` makes actions
of it, and here is decided which of them count: what the agent may ask for, what
somebody carries out, and how many of them. The rest is dropped with a reason.

Only model text is ever parsed. What is not well formed is not carried out, is not
shown, and is reported.

From what was taken out of a text to what it asks for; pure and total.

What is not well formed is not guessed at: it gives a reason instead of an action.

Tells a model that recites its instructions from one that acts on them; pure.

"Repeat all that stands above" brings the examples of the prompt back, marks and all.
Whoever uses marks in earnest does not use several of the very examples at once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Literal, TypeVar

import msgspec

from actors.messages.inbound import Role
from actors.rules.markers import actions, tags
from actors.rules.markers.actions import Action, Delegation
from actors.rules.markers.control_words import plain, says_well
from actors.rules.markers.descriptions import MARKS
from actors.rules.markers.json_answers import (
    AnswerEnvelope,
    EnvelopeSanitizer,
    open_envelope,
)
from actors.rules.markers.line_stage import value_of
from actors.rules.markers.sanitizer import Sanitizer, may_hold_markers
from actors.rules.markers.stage import Block

BadShape = Literal[
    "unclosed",
    "nested",
    "bad_name",
    "no_task",
    "empty",
    "bad_parts",
    "bad_value",
    "bad_body",
    "too_long",
    "quoted",
]
"""Why a directive is not carried out, for every agent."""

MOST_NAME = 64
"""Characters of a key, a category, a domain, an id."""

_SPOKEN = TypeVar("_SPOKEN", bound=msgspec.Struct)

# Why blanks around the name: models write `[DELEGATE: ben]` as often as not.
_HEAD = re.compile(
    r"(?a:\[[A-Za-z_]+(?::\s{0,8}(?P<name>[\w.-]{1,64})?\s{0,8})?\])", re.ASCII
)
_PLAIN_NAME = re.compile(r"(?a:[A-Za-z0-9_-]{1,64})")
_FIELD = re.compile(
    r"[ \t*_-]*(?P<key>[A-Za-z][A-Za-z_ ]{0,30})[*_]*[ \t]*:(?P<value>.*)"
)
_SCORES: dict[str, Literal[-1, 0, 1]] = {
    "+1": 1,
    "1": 1,
    "0": 0,
    "+0": 0,
    "-1": -1,
    "\N{MINUS SIGN}1": -1,
}


def read(block: Block, text: str) -> actions.Action | BadShape:
    """Read a tag or a mark.

    Args:
        block: of the kind `tag` or `mark`.
        text: the whole text it was taken from.
    """
    if block.kind == "tag":
        return _read_tag(block, text)
    if block.is_too_long:
        return "too_long"
    return "quoted" if block.is_quoted else _read_line(block)


# --- tags -------------------------------------------------------------------------


def _read_tag(block: Block, text: str) -> actions.Action | BadShape:
    tag = tags.BLOCKS[block.name]
    head = _HEAD.match(text, block.start, block.end)
    name = (head["name"] or "") if head else ""
    if wrong := _wrong(block, tag, is_headless=head is None, name=name):
        return wrong
    begin = head.end() if head else block.start
    end = max(begin, block.end - len(tag.closer))
    if end - begin > tag.most:
        return "too_long"
    return _READERS[block.name](name, text[begin:end].strip())


def _wrong(
    block: Block, tag: tags.BlockTag, *, is_headless: bool, name: str
) -> BadShape | None:
    """Say what is wrong with a tag whatever it holds; the first that is."""
    is_bad = is_headless or not (name or tag.name.startswith("CREATE_"))
    if is_bad and tag.ends_with_paragraph:
        return "bad_name"  # its end was not even looked for
    found: dict[BadShape, bool] = {
        "unclosed": not block.is_closed,
        "nested": block.is_nested,
        "quoted": block.is_quoted,
        "bad_name": is_bad,
    }
    return next((why for why, is_so in found.items() if is_so), None)


def _delegation(name: str, body: str) -> actions.Action | BadShape:
    if not _PLAIN_NAME.fullmatch(name):
        return "bad_name"
    return actions.Delegation(name.lower(), body) if body else "no_task"


def _fact(name: str, body: str) -> actions.Action | BadShape:
    if tags.defuse(body) != body:
        return "nested"
    return actions.SaveFact(name.lower(), body) if body else "empty"


def _state(name: str, body: str) -> actions.Action | BadShape:
    if tags.defuse(body) != body:
        return "nested"
    return actions.SetAgentState(name, body) if body else "empty"


def _cron(_: str, body: str) -> actions.Action | BadShape:
    return _whole(_as(body, actions.CreateCron), "schedule", "prompt")


def _heartbeat(_: str, body: str) -> actions.Action | BadShape:
    found = _whole(_as(body, actions.CreateHeartbeat), "prompt")
    if isinstance(found, str):
        return found
    return found if 1 <= found.minutes <= actions.MAX_MINUTES else "bad_value"


def _client(_: str, body: str) -> actions.Action | BadShape:
    return _whole(_as(body, actions.CreateClient), "name")


def _new_agent(name: str, body: str) -> actions.Action | BadShape:
    found = _as(body, actions.AgentFields)
    if found is None:
        return "bad_body"
    slug = _slug(name or found.slug or found.name or "")
    return actions.CreateAgent(slug, found) if slug else "bad_name"


def _changed_agent(name: str, body: str) -> actions.Action | BadShape:
    found = _as(body, actions.AgentFields)
    if found is None:
        return "bad_body"
    return actions.UpdateAgent(_slug(name), found) if _slug(name) else "bad_name"


_READERS: dict[str, Callable[[str, str], actions.Action | BadShape]] = {
    "DELEGATE": _delegation,
    "MEMORY": _fact,
    "STATE": _state,
    "CREATE_AGENT": _new_agent,
    "UPDATE_AGENT": _changed_agent,
    "CREATE_CRON": _cron,
    "CREATE_HEARTBEAT": _heartbeat,
    "CREATE_CLIENT": _client,
}


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:MOST_NAME]


def _as(body: str, shape: type[_SPOKEN]) -> _SPOKEN | None:
    fields = fields_of(body)
    try:
        return msgspec.convert(fields, shape, strict=False) if fields else None
    except msgspec.ValidationError:
        return None


def _whole(found: _SPOKEN | None, *names: str) -> _SPOKEN | BadShape:
    if found is None:
        return "bad_body"
    has_all = all(str(getattr(found, name)).strip() for name in names)
    return found if has_all else "bad_body"


_LISTS = frozenset({"tools", "delegates"})


def fields_of(body: str) -> dict[str, object]:
    """Read `{"key": value}` or lines `key: value`; a line without a key goes on.

    Returns:
        Keys in lower case with `_` for blanks; nothing if it is neither, or if one
        key stands there twice.
    """
    if body.startswith("{"):
        return _of_json(body)
    found: dict[str, list[str]] = {}
    last: list[str] | None = None
    for line in body.splitlines():
        field = _FIELD.fullmatch(line)
        key = field["key"].strip().lower().replace(" ", "_") if field else ""
        if field and not (key not in _KEYS and last is not None):
            if key in found:
                return {}
            last = found[key] = [field["value"].strip()]
        elif last is None:
            return {}
        else:
            last.append(line)
    return {key: _listed(key, "\n".join(lines).strip()) for key, lines in found.items()}


_KEYS = frozenset(
    field
    for shape in (
        actions.AgentFields,
        actions.CreateCron,
        actions.CreateHeartbeat,
        actions.CreateClient,
    )
    for field in shape.__struct_fields__
)
"""Why known: a prompt of several lines may hold colons, too."""


def _listed(key: str, value: str) -> object:
    if key in _LISTS:
        return tuple(each.strip() for each in value.split(",") if each.strip())
    return value


def _of_json(body: str) -> dict[str, object]:
    try:
        return msgspec.json.decode(body, type=dict[str, object])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}


# --- lines ------------------------------------------------------------------------


def _read_line(block: Block) -> actions.Action | BadShape:
    value = value_of(block.text)
    if tags.defuse(value) != value:
        return "nested"
    if block.name in tags.MEDIA:
        return _file(block.name, value)
    return _read_parts(block, value)


def _read_parts(block: Block, value: str) -> actions.Action | BadShape:
    mark = tags.LINES[block.name]
    if mark.least == 0:
        return "bad_parts" if value.strip(" .!") else _BARE[block.name]()
    parts = [part.strip() for part in value.split("|", mark.most - 1)]
    if len(parts) < mark.least:
        return "bad_parts"
    # The first part and the last that must be there say what it is about.
    if not all(parts[: mark.least]) and block.name != "UPDATE_TASK":
        return "empty"
    if len(value) > tags.MAX_BODY:
        return "too_long"
    return _PARTS[block.name](parts)


def _file(name: str, value: str) -> actions.SendFile | BadShape:
    path, _, caption = (part.strip() for part in value.partition("|"))
    return actions.SendFile(path, tags.MEDIA[name], caption) if path else "empty"


def _schedule(parts: list[str], *, is_action: bool) -> actions.Schedule | BadShape:
    text, due, *rest = parts
    repeat = (rest[0].lower() if rest else "") or "once"
    if len(due) > MOST_NAME or len(repeat) > MOST_NAME:
        return "bad_value"
    return actions.Schedule(text, due, repeat, is_action=is_action)


def _update(parts: list[str]) -> actions.UpdateTask | BadShape:
    key, text, due, repeat = (*parts, "", "")[:4]
    if not key or not (text or due or repeat):
        return "empty"
    if max(map(len, (key, due, repeat))) > MOST_NAME:
        return "bad_value"
    return actions.UpdateTask(key, text, due, repeat.lower())


def _reward(parts: list[str]) -> actions.AddReward | BadShape:
    score = _SCORES.get(parts[0])
    if score is None or len(parts[1]) > MOST_NAME:
        return "bad_value"
    return actions.AddReward(score, parts[1], parts[2])


def _interval(parts: list[str]) -> actions.SetHeartbeatInterval | BadShape:
    found = re.fullmatch(r"(?ai:([0-9]{1,5})\s*(?:m|min|mins|minutes?)?\.?)", parts[0])
    minutes = int(found[1]) if found else 0
    if 1 <= minutes <= actions.MAX_MINUTES:
        return actions.SetHeartbeatInterval(minutes)
    return "bad_value"


def _short(
    make: Callable[[str], actions.Action],
) -> Callable[[list[str]], actions.Action | BadShape]:
    """Make an action of one short word or name."""
    return lambda parts: make(parts[0]) if len(parts[0]) <= MOST_NAME else "bad_value"


def _lesson(parts: list[str]) -> actions.AddLesson | BadShape:
    return actions.AddLesson(*parts) if len(parts[0]) <= MOST_NAME else "bad_value"


def _skill(parts: list[str]) -> actions.ImproveSkill | BadShape:
    return actions.ImproveSkill(*parts) if len(parts[0]) <= MOST_NAME else "bad_value"


_BARE: dict[str, Callable[[], actions.Action]] = {
    "FORGET_CONVERSATION": actions.ForgetConversation,
    "PROJECT_DEACTIVATE": actions.DeactivateProject,
    "PURGE_FACTS": actions.PurgeFacts,
}
_PARTS: dict[str, Callable[[list[str]], actions.Action | BadShape]] = {
    "SCHEDULE": lambda parts: _schedule(parts, is_action=False),
    "SCHEDULE_ACTION": lambda parts: _schedule(parts, is_action=True),
    "CANCEL_TASK": _short(actions.CancelTask),
    "UPDATE_TASK": _update,
    "REWARD": _reward,
    "LESSON": _lesson,
    "PERSONALITY": lambda parts: actions.SetPersonality(parts[0]),
    "LANG_SWITCH": _short(actions.SwitchLanguage),
    "HEARTBEAT_ADD": lambda parts: actions.AddHeartbeatItem(parts[0]),
    "HEARTBEAT_REMOVE": lambda parts: actions.RemoveHeartbeatItem(parts[0]),
    "HEARTBEAT_INTERVAL": _interval,
    "SKILL_IMPROVE": _skill,
    "BUG_REPORT": lambda parts: actions.ReportBug(parts[0]),
    "PROJECT_ACTIVATE": _short(actions.ActivateProject),
}


MAX_DELEGATIONS = 8
"""Most delegations of one text; what is more is reported and not carried out."""

MAX_ACTIONS = 32
"""Most other actions of one text, likewise."""

MAX_REPORTED = 16
"""About the most entries of `dropped`; `dropped_total` counts all."""

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
"""The control word by which an agent says that it found nothing to do."""

DONE = "done"
"""The control word by which an agent says that nothing more is to be said."""


class ParserRules(msgspec.Struct, frozen=True):
    """What of an agent's text counts, and what of it is shown."""

    families: frozenset[tags.Family] = frozenset(tags.FAMILIES)
    """Which marks it may use."""

    hides_narration: bool = False
    """Whether lines go in which it tells what it will look up."""

    opens_envelopes: bool = False
    """Whether it answers in objects with `text`, `thought` and `actions`."""


EVERYTHING = ParserRules()

LONGEST_KEPT = 4_096
"""Characters of a text whose parts are kept for the next who asks for them."""


def cleaner(egress: ParserRules) -> Sanitizer | EnvelopeSanitizer:
    """Give what cleans a text as it streams, just as `parse` would the whole of it."""
    if egress.opens_envelopes:
        return EnvelopeSanitizer(hides_narration=egress.hides_narration)
    return Sanitizer(hides_narration=egress.hides_narration)


class DroppedMarker(msgspec.Struct, frozen=True):
    """Something taken out of the text and not carried out."""

    reason: DropReason
    excerpt: str
    """Its beginning, for logs."""

    name: str = ""
    """Of the tag or mark; empty for what never is carried out."""


class ParsedAnswer(msgspec.Struct, frozen=True):
    """A model's text taken apart."""

    visible: str
    """For people; without blanks at both ends if anything was taken out."""

    actions: tuple[Action, ...] = ()
    """In the order in which they are to be carried out."""

    dropped: tuple[DroppedMarker, ...] = ()
    """The first `MAX_REPORTED`, and the first for each reason, in order."""

    dropped_total: int = 0
    controls: tuple[str, ...] = ()
    """Control words it held, each once: `NO_REPLY`, `DONE`, …"""

    thought: str = ""
    """Of an answer in an object: why it is given. For clients of ElizaOS only."""

    named: tuple[str, ...] = ()
    """Of an answer in an object: its actions by name, such as `REPLY`. They are shown
    to clients of ElizaOS, and not carried out."""

    @property
    def delegations(self) -> tuple[Delegation, ...]:
        """What other agents are to do."""
        return tuple([each for each in self.actions if isinstance(each, Delegation)])

    @property
    def others(self) -> tuple[Action, ...]:
        """All actions but delegations."""
        return tuple(
            [each for each in self.actions if not isinstance(each, Delegation)]
        )

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
        if not self.dropped:
            return ""
        return "\n".join(dict.fromkeys(_notices(self.dropped)))

    @property
    def is_withheld(self) -> bool:
        """True if the model says that it has nothing to say.

        What little is left around its control word does not count: no letter, no
        digit, no sign that means something.
        """
        if not self.controls or any(map(str.isalnum, self.visible)):
            return False
        return not (self.actions or self.notice)

    def says_nothing(self, most: int) -> bool:
        """True if it is withheld, or a heartbeat's few words that all is well.

        Args:
            most: characters that may stand beside `HEARTBEAT_OK`; 0: none.
        """
        is_little = len(self.visible.strip()) <= most and (
            ALL_WELL in map(plain, self.controls) or says_well(self.visible)
        )
        if not (is_little or self.controls):  # an answer, as most often
            return False
        is_all = not (self.actions or self.notice)
        return self.is_withheld or (is_little and is_all)

    @property
    def is_silent(self) -> bool:
        """True if there is nothing to show, to carry out or to tell."""
        has_words = bool(self.visible.strip())
        if has_words and not self.controls:  # an answer, as most often
            return False
        has_words = has_words and not self.is_withheld
        return not (has_words or self.actions or self.notice)


def _notices(dropped: tuple[DroppedMarker, ...]) -> list[str]:
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
    """Whether a control word says that nothing more is to be said."""
    return word.strip("[]").casefold() == DONE


def parse(text: str, role: Role, egress: ParserRules = EVERYTHING) -> ParsedAnswer:
    """Take a whole text apart.

    Args:
        text: what was said, of any length.
        role: who said it; only an assistant's text holds markers.
    """
    if role != "assistant":
        return ParsedAnswer(text)
    take = _taken_apart if len(text) > LONGEST_KEPT else _kept
    return take(text, egress)


def _taken_apart(text: str, egress: ParserRules) -> ParsedAnswer:
    envelope = open_envelope(text) if egress.opens_envelopes else None
    envelope = envelope or AnswerEnvelope(text)
    text, controls = envelope.text, envelope.controls
    thought, named = envelope.thought, envelope.actions
    blocks: list[Block] = []
    visible = text
    if egress.hides_narration or may_hold_markers(text):
        sanitizer = Sanitizer(blocks, hides_narration=egress.hides_narration)
        visible = sanitizer.feed(text) + sanitizer.finish()
    if not blocks:
        return ParsedAnswer(text, controls=controls, thought=thought, named=named)
    found = _Found(text, egress)
    for block in sorted(blocks, key=_start):
        found.take(block)
    return ParsedAnswer(
        visible.strip(),
        tuple(sorted(found.actions, key=actions.rank)),
        tuple(found.dropped),
        found.total,
        tuple(dict.fromkeys((*controls, *found.controls))),
        thought,
        named,
    )


# Why kept: one answer is taken apart at the end of its round, of its turn and where it
# is stored, said and remembered, by actors that know nothing of each other.
_kept = lru_cache(maxsize=256)(_taken_apart)


def _start(block: Block) -> int:
    return block.start


class _Found:
    """What was found in one text so far."""

    def __init__(self, text: str, egress: ParserRules) -> None:
        self._text = text
        self._egress = egress
        self._left = {True: MAX_DELEGATIONS, False: MAX_ACTIONS}
        self._reasons: set[tuple[DropReason, str]] = set()
        self.actions: list[Action] = []
        self.dropped: list[DroppedMarker] = []
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
            self.dropped.append(DroppedMarker(reason, excerpt[:_EXCERPT], block.name))
        self._reasons.add(known)


RECITED = 3
"""So many different examples in one text, and it recites."""


def in_earnest(wants: tuple[Action, ...]) -> tuple[Action, ...]:
    """Give what a text asks for, without the examples if it recites them."""
    shown = examples()
    if len({each for each in wants if each in shown}) < RECITED:
        return wants
    return tuple(each for each in wants if each not in shown)


@cache
def examples() -> frozenset[Action]:
    """Give what the examples of the prompt ask for."""
    texts = (text for mark in MARKS for text in mark.examples)
    return frozenset(
        each for text in texts for each in parse(text, "assistant").actions
    )
