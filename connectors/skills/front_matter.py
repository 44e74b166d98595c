"""The head of a SKILL.md: YAML between two lines of `---`.

PyYAML finds the parts; of all that YAML can do, only texts, lists and tables are
taken. Anchors and aliases, by which a few lines become gigabytes, tags, by which a
file chooses what is built of it, and deep nesting are refused where they stand.
"""

from __future__ import annotations

from typing import NoReturn

import yaml
from yaml import events as kinds

from runtime.errors import SettingsError

Tree = str | list["Tree"] | dict[str, "Tree"]

FENCE = "---"
LARGEST_HEAD = 16 * 1024
"""Characters."""

MOST_PARTS = 1_000
DEEPEST = 8


def split(text: str, file: str) -> tuple[str, str]:
    """Part a file into its head and its body.

    Raises:
        SettingsError: it does not begin with a head.
    """
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    hint = "begin with a line ---, then name: and description:, then a line ---"
    if not lines or lines[0].rstrip() != FENCE:
        raise SettingsError("has no head", file=file, line=1, hint=hint)
    size = 0
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == FENCE:
            return "".join(lines[1:number]), "".join(lines[number + 1 :])
        size += len(line)
        if size > LARGEST_HEAD:
            text = f"its head is above {LARGEST_HEAD} characters, or has no end"
            raise SettingsError(text, file=file, line=1, hint=hint)
    raise SettingsError("its head has no end", file=file, line=1, hint=hint)


def parse(head: str, file: str) -> dict[str, Tree]:
    """Read the head; every value that is no list or table is a text.

    Raises:
        SettingsError: it is no YAML, no table, or more than is taken here.
    """
    try:
        # Why events: they come one by one, and what they make is up to us.
        tree = TreeBuilder(file).read(list_of(head, file))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 2 if mark is not None else 0
        text = f"its head is no YAML: {error.problem or error.context}"
        hint = 'a text with ": " or # in it stands in quotes'
        raise SettingsError(text, file=file, line=line, hint=hint) from error
    except (yaml.YAMLError, ValueError) as error:
        raise SettingsError(f"its head is no YAML: {error}", file=file) from error
    if not isinstance(tree, dict):
        raise SettingsError("its head is no table of names and texts", file=file)
    return tree


def list_of(head: str, file: str) -> list[kinds.Event]:
    """Take in the events, refusing what is not taken before more of it is read."""
    found: list[kinds.Event] = []
    depth = 0
    for event in yaml.parse(head, Loader=yaml.SafeLoader):
        found.append(event)
        depth += isinstance(event, kinds.CollectionStartEvent)
        depth -= isinstance(event, kinds.CollectionEndEvent)
        if depth > DEEPEST or len(found) > MOST_PARTS:
            refuse(event, file, "too much, or nested too deeply")
        if isinstance(event, kinds.AliasEvent) or getattr(event, "anchor", None):
            refuse(event, file, "anchors and aliases are not read")
        if getattr(event, "tag", None):
            refuse(event, file, "tags are not read")
    return found


def refuse(event: kinds.Event, file: str, text: str) -> NoReturn:
    """Complain of a part, where it stands.

    Raises:
        SettingsError: always.
    """
    mark = event.start_mark
    line = mark.line + 2 if mark is not None else 0
    raise SettingsError(f"its head: {text}", file=file, line=line)


class TreeBuilder:
    """Makes a tree of events."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._left: list[kinds.Event] = []

    def read(self, found: list[kinds.Event]) -> Tree:
        """Make the tree of one document; of more than one, it is no head."""
        frame = (
            kinds.StreamStartEvent,
            kinds.DocumentStartEvent,
            kinds.DocumentEndEvent,
            kinds.StreamEndEvent,
        )
        self._left = [each for each in found if not isinstance(each, frame)][::-1]
        tree = self._value(self._left.pop()) if self._left else {}
        if self._left:
            refuse(self._left[-1], self._file, "there is more than one document")
        return tree

    def _value(self, event: kinds.Event) -> Tree:
        match event:
            case kinds.ScalarEvent(value=str(text)):
                return text
            case kinds.SequenceStartEvent():
                items: list[Tree] = []
                while not self._ends(kinds.SequenceEndEvent):
                    items.append(self._value(self._left.pop()))
                return items
            case kinds.MappingStartEvent():
                return self._table()
            case _:
                refuse(event, self._file, "a part of a kind that is not read")

    def _table(self) -> dict[str, Tree]:
        table: dict[str, Tree] = {}
        while not self._ends(kinds.MappingEndEvent):
            key = self._left.pop()
            if not isinstance(key, kinds.ScalarEvent):
                refuse(key, self._file, "a name must be a text")
            if key.value in table:
                refuse(key, self._file, f"{key.value!r} stands there twice")
            table[key.value] = self._value(self._left.pop())
        return table

    def _ends(self, kind: type[kinds.Event]) -> bool:
        if isinstance(self._left[-1], kind):
            self._left.pop()
            return True
        return False
