"""From what was taken out of a text to what it asks for; pure and total.

What is not well formed is not guessed at: it gives a reason instead of an action.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from actors.rules import actions, line_shapes, tags

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.rules.blocks import Block

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
"""Why a mark is not carried out, whoever wrote it."""

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
    return actions.SetState(name, body) if body else "empty"


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
    value = line_shapes.value_of(block.text)
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
