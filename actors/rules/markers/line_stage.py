"""Second stage of the sanitiser: removes line markers from streamed text. Pure.

It gets the text that the first stage left. Text is held back only at the beginning and
the end of a line, until it is clear that the line is no marker, no tool call in JSON
and no control word. Lines of code are unchanged, unless a code block holds nothing but
markers: models wrap them so. A line marker may stand behind a list's dash, and be bold;
behind a quote's bracket or in backticks it is an example.

A tool call that a model wrote as bare JSON into its text is recognised narrowly: an
object alone on its lines, or alone in a code block, with a tool's name and its
arguments and nothing else but what vendors put beside them. What merely holds such keys
inside something larger is an answer, and stays.
"""

from __future__ import annotations

import re
from typing import Literal, assert_never, cast

import msgspec

from actors.rules.markers import control_words, narration
from actors.rules.markers.stage import MOST_FENCED, Block, Fence, Kind, ShownText
from actors.rules.markers.tags import LINES, MEDIA
from actors.rules.text.measure import closes, fence_of

MOST_JSON = 16_000
"""Characters of such an object; a longer one is shown."""

_ARGUMENTS = ("arguments", "parameters", "input")
_BESIDE = ("id", "call_id", "type", "function")
_KEYS = "|".join(("name", "tool_calls", *_ARGUMENTS, *_BESIDE))
_BEGIN = re.compile(rf'\{{\s{{0,40}}"(?:{_KEYS})"\s{{0,8}}:')
_CUT_BEGIN = re.compile(r'\{\s{0,40}(?:"(?:[a-z_]{0,12}(?:"\s{0,8})?)?)?')
_CUT_CALL = re.compile(
    r'\{\s*"name"\s*:\s*"[A-Za-z_][\w.:/-]*"\s*,\s*'
    r'"(?:arguments|parameters|input)"\s*:'
)
_NAME = re.compile(r"(?a:[A-Za-z_][\w.:/-]{0,127})")
_TYPES = ("function", "tool_use", "tool_call", "function_call")


def begins(head: str) -> bool:
    """Whether an object begins as such a call does."""
    return _BEGIN.match(head) is not None


def may_begin(head: str) -> bool:
    """Whether more letters could make such a beginning of this."""
    return _CUT_BEGIN.fullmatch(head) is not None


def is_cut_call(text: str) -> bool:
    """Whether an object that never ended was a call: its arguments had begun."""
    return _CUT_CALL.match(text) is not None


def is_call(text: str) -> bool:
    """Whether a whole object is such a call."""
    try:
        found: object = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return _is_call(found)


def _is_call(found: object) -> bool:
    if not isinstance(found, dict):
        return False
    fields = cast("dict[str, object]", found)
    if set(fields) == {"tool_calls"}:
        calls = fields["tool_calls"]
        return isinstance(calls, list) and all(
            map(_is_call, cast("list[object]", calls))
        )
    kind = fields.get("type", "function")
    if kind not in _TYPES or not _are_ids(fields):
        return False
    if "function" in fields:
        return set(fields) <= {*_BESIDE} and _is_call(fields["function"])
    given = [key for key in _ARGUMENTS if key in fields]
    rest = set(fields) - {"name", *_ARGUMENTS, *_BESIDE}
    name = fields.get("name")
    return (
        not rest
        and len(given) == 1
        and isinstance(name, str)
        and _NAME.fullmatch(name) is not None
        and _are_arguments(fields[given[0]])
    )


def _are_ids(fields: dict[str, object]) -> bool:
    return all(isinstance(fields.get(key, ""), str) for key in ("id", "call_id"))


def _are_arguments(given: object) -> bool:
    """Whether these are arguments: an object, or an object written as text."""
    if isinstance(given, str):
        text = given.strip()
        return text.startswith("{") and text.endswith("}")
    return isinstance(given, dict)


class ObjectEnd(msgspec.Struct):
    """Finds where a JSON object ends that comes in pieces; each letter is read once."""

    _read: int = 0  # of the text
    end: int | None = None
    """Characters of the object, when its end has been found."""

    _depth: int = 0
    _in_string: bool = False
    _is_escaped: bool = False

    @property
    def is_too_long(self) -> bool:
        """Whether so much was looked through that it is given up."""
        return self.end is None and self._read >= MOST_JSON

    def look(self, text: str, begin: int) -> None:
        """Look on in a text that has grown.

        Args:
            begin: where in it the object's brace stands, or blanks before it.
        """
        stop = min(len(text), begin + MOST_JSON)
        for place in range(begin + self._read, stop):
            if self.end is not None:
                return
            self._read += 1
            if self._take(text[place]):
                self.end = self._read

    def _take(self, letter: str) -> bool:
        if self._is_escaped:
            self._is_escaped = False
        elif self._in_string:
            self._is_escaped = letter == "\\"
            self._in_string = letter != '"'
        elif letter == '"':
            self._in_string = True
        elif letter in "{}":
            self._depth += 1 if letter == "{" else -1
            return self._depth == 0
        return False


Shape = Literal["undecided", "plain", "blank", "line", "object", "narration"]

LOOK = 64
"""Characters at the beginning of a line by which it is told what it may be."""

_FORMATTING = " \t*_`~#>-"

_NAMES = "|".join(LINES)
_MEDIA = "|".join(MEDIA)
_SURE = "|".join(map(re.escape, control_words.SURE))
_MAY_BE = re.compile(
    rf"(?:{_NAMES}|{'|'.join(control_words.UNSURE)})(?![A-Za-z0-9_])|(?ai:{_SURE})"
    rf"|\[(?:{_MEDIA}):"
)
_LARGE = frozenset(
    word[:length]
    for word in (*LINES, *control_words.UNSURE, *(f"[{name}:" for name in MEDIA))
    for length in range(1, len(word) + 1)
)
_SMALL = frozenset(
    word[:length] for word in control_words.SURE for length in range(1, len(word) + 1)
)
_MARK = re.compile(
    rf"(?P<before>[\s*_`~#>-]*)(?P<name>{_NAMES})(?![A-Za-z0-9_])"
    r"[*_`~]{0,4}[ \t]{0,8}"
    r"(?::(?P<value>.*))?",
    re.DOTALL,
)
_MEDIA_MARK = re.compile(
    rf"(?P<before>[\s*_`~#>-]*)\[(?P<name>{_MEDIA}):(?P<value>[^\[\]]*)\]"
    r"[\s*_`~.!]*",
)
_NOTHING = re.compile(r"[\s*_`~.!]*")


def shape_of(head: str, *, is_whole: bool, hides_narration: bool = False) -> Shape:
    """Say what a line may be.

    Args:
        head: its first `LOOK` characters, or fewer if the rest is not there yet; what
            follows a line break does not matter.
        is_whole: whether no more is to come that could tell.
        hides_narration: whether narration is looked for.
    """
    line, has_end, _ = head.partition("\n")
    bare = line.lstrip(" \t\r")
    if bare.startswith("{"):  # its first key may stand on the next line
        return _of_object(head.lstrip(" \t\r"), is_whole=is_whole)
    is_whole = is_whole or bool(has_end)
    if not bare:
        return "blank" if has_end else ("plain" if is_whole else "undecided")
    if bare.startswith(("```", "~~~")):
        return "line"
    core = bare.lstrip(_FORMATTING)
    is_beginning = not core or core in _LARGE or core.lower() in _SMALL
    if is_beginning and not is_whole:
        return "undecided"
    if _MAY_BE.match(core):
        return "line"
    return _of_words(line, is_whole=is_whole) if hides_narration else "plain"


def _of_object(bare: str, *, is_whole: bool) -> Shape:
    if begins(bare):
        return "object"
    may = not is_whole and may_begin(bare)
    return "undecided" if may else "plain"


def _of_words(line: str, *, is_whole: bool) -> Shape:
    may = narration.may_be(line)
    if may is None:
        return "plain" if is_whole else "undecided"
    return "narration" if may else "plain"


def may_close(mark: str, head: str) -> bool:
    """Whether more letters could make the end of a code block of this."""
    return not head.strip().strip(mark[0])


def mark_of(line: str) -> str:
    """Give the name of the mark that a whole line is; empty if it is none."""
    if (media := _MEDIA_MARK.fullmatch(line)) is not None:
        return media["name"]
    found = _MARK.fullmatch(line)
    return _name(found, line[found.end("name") :]) if found else _bare(line)


def name_of(head: str) -> str:
    """Give the name of the mark that a line of unknown length is."""
    found = _MARK.match(head)
    return _name(found, head[found.end("name") :]) if found else ""


def value_of(line: str) -> str:
    """Give what stands in a mark, after its colon."""
    if (media := _MEDIA_MARK.match(line)) is not None:
        return media["value"].strip()
    found = _MARK.match(line)
    value = (found["value"] or "").strip() if found else ""
    is_wrapped = found is not None and found["before"].strip(" \t#>-")
    return value.strip("*`").strip() if is_wrapped else value.removeprefix("**").strip()


def is_quoted_line(line: str) -> bool:
    """Whether a mark is written as an example."""
    found = _MARK.match(line) or _MEDIA_MARK.match(line)
    return found is not None and ("`" in found["before"] or ">" in found["before"])


def _name(found: re.Match[str], after: str) -> str:
    name, value = found["name"], found["value"]
    shape = LINES[name]
    if value is None:
        return _bare_name(name, after)
    if shape.is_word and not ("|" in value if shape.least > 1 else value.strip()):
        return ""
    return name


def _bare(line: str) -> str:
    found = _MARK.match(line)
    return _bare_name(found["name"], line[found.end("name") :]) if found else ""


def _bare_name(name: str, after: str) -> str:
    """Give the name of a mark without a value, if nothing else is said."""
    return name if LINES[name].least == 0 and _NOTHING.fullmatch(after) else ""


MOST = 4_200
"""Longest line, in characters, that can be a marker; a longer one is text or
dropped.
"""

Mode = Literal["line", "words", "swallow", "object", "code"]


class LineStage:
    """Removes line markers, JSON tool calls and control words.

    However a text is split into pieces, the results of `take` add up to the same, and
    the time is linear in its length.

    Args:
        blocks: receives what was removed; None records nothing.
        hides_narration: whether lines are removed in which a model announces a lookup.
    """

    def __init__(
        self, blocks: list[Block] | None = None, *, hides_narration: bool = False
    ) -> None:
        self._blocks = blocks
        self._hides_narration = hides_narration
        self._mode: Mode = "line"
        self._text = ""  # not decided on before `_at`, decided
        self._at: int = 0
        self._end: int = 0  # of `_text`, in the whole text
        self._passed: int = (
            0  # of what came, all in all, up to the beginning of `_text`
        )
        self._no_object_before: int = 0  # counted likewise
        self._object = ObjectEnd()
        self._looked: int = 0  # how far the line's end was looked for
        self._is_over = False
        self._is_fresh = True  # whether the next letter begins a word
        self._last = "\n"
        self._fence: Fence | None = None
        self._code = ""  # with what the code block began that shows now
        self._is_code_line_new = False
        self._shown = ShownText(blocks)

    # --- what the first stage asks ----------------------------------------------

    @property
    def is_quoted(self) -> bool:
        """Whether the text is in code now."""
        return bool(self._code) or self._fence is not None or self._last == "`"

    @property
    def is_quiet(self) -> bool:
        """Whether a piece without line breaks may pass unchanged."""
        return self._mode == "words" and not self._text and self._shown.is_quiet

    @property
    def begins_word(self) -> bool:
        """Whether the next character begins a word."""
        return self._is_fresh

    def skip(self, length: int, last: str) -> None:
        """Note plain text that passed; `last` is its end. Only if `is_quiet`."""
        self._passed += length
        self._end += length
        self._last = last[-1]
        self._is_fresh = last[-1] in control_words.BLANKS
        self._shown.skip(last)

    def took(self, kind: Kind) -> None:
        """Take notice that the first stage removed a tag here."""
        if self._fence is not None:
            self._fence.has_lost = True
        if kind == "tool_call" and not self._text.strip():
            self._shown.drop_narration()

    # --- the text ---------------------------------------------------------------

    def feed(self, text: str, end: int) -> None:
        """Take the next piece.

        Args:
            text: text that the first stage left.
            end: its end offset in the whole text.
        """
        self._text += text
        self._end = end
        self._last = text[-1:] or self._last
        self._run()

    def finish(self) -> None:
        """End the text. Call it once."""
        self._is_over = True
        self._run()
        if self._fence is not None:
            self._end_fence(self._fence, "")
        self._shown.finish()

    def take(self) -> str:
        """Return the text to show so far."""
        return self._shown.take()

    def _run(self) -> None:
        while self._at < len(self._text) and self._step():
            pass
        self._passed += self._at
        self._text = self._text[self._at :]
        self._at = 0

    def _step(self) -> bool:
        """Process more text; False if the next piece must come first."""
        match self._mode:
            case "line":
                return self._begin_line()
            case "words":
                return self._go_on()
            case "object":
                return self._read_object()
            case "code":
                return self._read_code()
            case "swallow":
                return self._swallow()
            case _:
                assert_never(self._mode)

    # --- at the beginning of a line ----------------------------------------------

    def _begin_line(self) -> bool:
        head = self._text[self._at : self._at + LOOK]
        is_whole = self._is_over or len(head) == LOOK
        shape = shape_of(head, is_whole=is_whole, hides_narration=self._hides_narration)
        if shape == "undecided":
            return False
        if shape == "object" and self._passed + self._at >= self._no_object_before:
            self._object, self._mode = ObjectEnd(), "object"
            return True
        if shape in {"line", "narration"}:
            return self._read_line(MOST if shape == "line" else narration.MOST)
        if shape == "blank" and self._fence is not None:
            end = self._text.index("\n", self._at) + 1
            return self._keep_fenced(self._fence, end)
        return self._show_line()

    def _show_line(self) -> bool:
        """Show this line, whatever it is."""
        self._looked = 0
        if self._fence is not None:
            self._show_fence(self._fence)
        else:
            self._mode, self._is_fresh = "words", True
        return True

    def _read_line(self, most: int) -> bool:
        """Read a line that may be a marker; wait for its end."""
        end = self._text.find("\n", self._at + self._looked)
        length = (len(self._text) if end < 0 else end) - self._at
        if end < 0 and not self._is_over and length <= most:
            self._looked = length
            return False
        if length > most:
            return self._read_long_line(most)
        self._looked = 0
        line = self._text[self._at : self._at + length]
        if self._fence is not None:
            return self._read_fenced(self._fence, line)
        mark = fence_of(line)
        if mark and end >= 0:
            self._fence = Fence(mark, line + "\n")
            self._at = end + 1
            return True
        return self._take_line(line)

    def _read_long_line(self, most: int) -> bool:
        """Hide a marker that is too long; show any other line."""
        head = self._text[self._at : self._at + most]
        name = name_of(head)
        if not name or self._fence is not None or most < MOST:
            return self._show_line()
        self._looked = 0
        self._shown.note(self._block("mark", most, name, is_too_long=True))
        self._mode = "swallow"
        return True

    def _swallow(self) -> bool:
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end
        if end >= 0:
            self._mode = "words"
        return True

    def _take_line(self, line: str) -> bool:
        """Remove a whole line, or the control word before it, or nothing."""
        if (found := self._found_in(line)) is not None:
            self._shown.note(found)
            self._at += len(line)
        elif (first := control_words.first_of(line)) is not None:
            name = control_words.plain(first[0])
            self._shown.note(self._block("control", first[1], name))
            self._at += first[1]
            if (found := self._found_in(line[first[1] :])) is not None:
                self._shown.note(found)
                self._at += len(line) - first[1]
        elif (waits := self._waits(line)) is not None:
            end = min(self._at + len(line) + 1, len(self._text))
            self._shown.wait(self._text[self._at : end], waits)
            self._at = end
            return True
        return self._show_line()

    def _found_in(self, line: str) -> Block | None:
        """Return the kind of a line that is always removed."""
        if words := control_words.all_of(line):
            return self._block("control", len(line), control_words.plain(words[0]))
        name = mark_of(line)
        if not name:
            return None
        is_quoted = is_quoted_line(line) or self._fence is not None
        return self._block("mark", len(line), name, line, is_quoted=is_quoted)

    def _waits(self, line: str) -> Block | None:
        """Return the kind of a line that depends on the following text."""
        word = control_words.unsure_of(line)
        if word and not self._shown.has_words:
            return self._block("control", len(line), word)
        if self._hides_narration and narration.is_narration(line):
            return self._block("narration", len(line))
        return None

    def _block(
        self,
        kind: Kind,
        length: int,
        name: str = "",
        text: str = "",
        *,
        is_quoted: bool = False,
        is_too_long: bool = False,
    ) -> Block:
        start = self._end - (len(self._text) - self._at)
        return Block(
            kind,
            start,
            start + length,
            name,
            text,
            is_quoted=is_quoted,
            is_too_long=is_too_long,
        )

    # --- within a line, and at its end ---------------------------------------------

    def _go_on(self) -> bool:
        """Show text up to the line's end, without control words there."""
        end = self._text.find("\n", self._at)
        if end < 0 and not self._is_over:
            rest = self._text[self._at :]
            hold = control_words.held_from(rest, is_fresh=self._is_fresh)
            if hold:
                self._shown.show(rest[:hold])
                self._is_fresh = rest[hold - 1] in control_words.BLANKS
            self._at += hold
            return False
        stop = len(self._text) if end < 0 else end
        line = self._text[self._at : stop]
        words, cut = control_words.last_of(line, is_fresh=self._is_fresh)
        self._shown.show(line[:cut])
        self._at += cut
        if words:
            name = control_words.plain(words[-1])
            self._shown.note(self._block("control", len(line) - cut, name))
        self._at = stop
        self._is_fresh = False
        if end >= 0:
            self._shown.show("\n")
            self._at, self._mode = end + 1, "line"
        return True

    # --- calls written as JSON ------------------------------------------------------

    def _read_object(self) -> bool:
        """Remove a tool call that is alone on its lines; wait for its end."""
        found = self._object
        found.look(self._text, self._at)
        if found.end is not None:
            return self._end_object(found.end)
        if found.is_too_long:
            return self._show_object(MOST_JSON)
        return self._is_over and self._end_cut_object()

    def _end_object(self, length: int) -> bool:
        """Remove a complete object if it is a tool call and ends its line."""
        stop = self._at + length
        end = self._text.find("\n", stop)
        rest = self._text[stop : len(self._text) if end < 0 else end]
        is_alone = not rest.strip() and len(rest) <= control_words.TAIL
        if is_alone and end < 0 and not self._is_over:
            return False
        if not (is_alone and is_call(self._text[self._at : stop])):
            return self._show_object(length)
        block = self._block("tool_json", length)
        self._mode = "line"
        if self._fence is not None:
            self._fence.blocks.append(block)
            return self._keep_fenced(self._fence, stop + len(rest) + 1)
        self._shown.note(block)
        self._at = stop + len(rest)
        return self._show_line()

    def _show_object(self, length: int) -> bool:
        """Show an object that is no tool call, without searching it for others."""
        self._no_object_before = self._passed + self._at + length
        self._mode = "line"
        return self._show_line()

    def _end_cut_object(self) -> bool:
        """Hide a truncated tool call; show anything else."""
        rest = self._text[self._at :]
        if not is_cut_call(rest):
            return self._show_object(len(rest))
        self._shown.note(self._block("tool_json", len(rest)))
        if self._fence is not None:
            self._fence.has_lost = True
        self._at = len(self._text)
        return True

    # --- code -------------------------------------------------------------------------

    def _read_fenced(self, fence: Fence, line: str) -> bool:
        """Read a line of a code block of which nothing has been shown."""
        if closes(fence.mark, line):
            self._at += len(line)
            self._end_fence(fence, line)
            return self._show_line()
        found = self._found_in(line)
        if found is None:
            return self._show_line()
        fence.blocks.append(found)
        return self._keep_fenced(fence, self._at + len(line) + 1)

    def _keep_fenced(self, fence: Fence, end: int) -> bool:
        """Hold a piece back until the rest of the block is known."""
        end = min(end, len(self._text))
        fence.text += self._text[self._at : end]
        self._at = end
        if len(fence.text) > MOST_FENCED:
            self._show_fence(fence)
        return True

    def _show_fence(self, fence: Fence) -> None:
        """Show a code block after all, since it holds text for people."""
        self._shown.show(fence.text)
        self._fence, self._code = None, fence.mark
        self._mode, self._is_code_line_new = "code", True

    def _end_fence(self, fence: Fence, line: str) -> None:
        """Remove a code block of nothing but markers; show an empty one."""
        self._fence = None
        if not (fence.blocks or fence.has_lost):
            self._shown.show(fence.text + line)
            return
        self._shown.gap()
        for block in fence.blocks:
            self._shown.note(block)

    def _read_code(self) -> bool:
        """Show code unchanged, up to its end."""
        if self._is_code_line_new:
            head = self._text[self._at : self._at + LOOK]
            line, has_end, _ = head.partition("\n")
            is_whole = has_end or self._is_over or len(head) == LOOK
            if not is_whole and may_close(self._code, line):
                return False
            if is_whole and closes(self._code, line):
                self._shown.show(line)
                self._at += len(line)
                self._code, self._mode = "", "words"
                return True
        end = self._text.find("\n", self._at) + 1
        stop = end or len(self._text)
        self._shown.show(self._text[self._at : stop])
        self._at, self._is_code_line_new = stop, end > 0
        return True
