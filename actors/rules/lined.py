"""The second stage of the sanitiser: takes lines out of a text while it streams; pure.

It sees what the first stage left. Only at the beginning of a line, and at its end,
something is held back: until it is clear that the line is no mark, no call written as
JSON, no control word. Lines of code are left as they are, but for a code block that
holds nothing else: models wrap what is not for people like that.
"""

from __future__ import annotations

from typing import Literal, assert_never

from actors.rules import control_words, line_shapes, narration, tool_json
from actors.rules.blocks import Block, Kind
from actors.rules.fence import MOST_FENCED, Fence
from actors.rules.shown import Shown

MOST = 4_200
"""Characters of a line that is read; a longer one is no mark, or a dropped one."""

Mode = Literal["line", "words", "swallow", "object", "code"]


class Lines:
    """Takes lines out.

    For every way of cutting a text into pieces, what `take` gives adds up to the
    same, and the time is in proportion to its length.

    Args:
        blocks: where to note what was taken out; None notes nothing.
        hides_narration: whether lines go in which a model tells what it will look up.
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
        self._object = tool_json.ObjectEnd()
        self._looked: int = 0  # how far the line's end was looked for
        self._is_over = False
        self._is_fresh = True  # whether the next letter begins a word
        self._last = "\n"
        self._fence: Fence | None = None
        self._code = ""  # with what the code block began that shows now
        self._is_code_line_new = False
        self._shown = Shown(blocks)

    # --- what the first stage asks ----------------------------------------------

    @property
    def is_quoted(self) -> bool:
        """Whether the text stands in code now."""
        return bool(self._code) or self._fence is not None or self._last == "`"

    @property
    def is_quiet(self) -> bool:
        """Whether a piece without line breaks may go on as it is."""
        return self._mode == "words" and not self._text and self._shown.is_quiet

    @property
    def begins_word(self) -> bool:
        """Whether the next letter begins a word."""
        return self._is_fresh

    def skip(self, length: int, last: str) -> None:
        """Note words that went by; `last` is the end of them. Only if `is_quiet`."""
        self._passed += length
        self._end += length
        self._last = last[-1]
        self._is_fresh = last[-1] in control_words.BLANKS
        self._shown.skip(last)

    def took(self, kind: Kind) -> None:
        """Learn that the first stage took something out here."""
        if self._fence is not None:
            self._fence.has_lost = True
        if kind == "tool_call" and not self._text.strip():
            self._shown.drop_narration()

    # --- the text ---------------------------------------------------------------

    def feed(self, text: str, end: int) -> None:
        """Take the next piece.

        Args:
            text: what the first stage left.
            end: where it ends in the whole text.
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
        """Give what may be shown by now."""
        return self._shown.take()

    def _run(self) -> None:
        while self._at < len(self._text) and self._step():
            pass
        self._passed += self._at
        self._text = self._text[self._at :]
        self._at = 0

    def _step(self) -> bool:
        """Go on with the text; False: more of it must come first."""
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
        head = self._text[self._at : self._at + line_shapes.LOOK]
        is_whole = self._is_over or len(head) == line_shapes.LOOK
        shape = line_shapes.shape_of(
            head, is_whole=is_whole, hides_narration=self._hides_narration
        )
        if shape == "undecided":
            return False
        if shape == "object" and self._passed + self._at >= self._no_object_before:
            self._object, self._mode = tool_json.ObjectEnd(), "object"
            return True
        if shape in {"line", "narration"}:
            return self._read_line(MOST if shape == "line" else narration.MOST)
        if shape == "blank" and self._fence is not None:
            end = self._text.index("\n", self._at) + 1
            return self._keep_fenced(self._fence, end)
        return self._show_line()

    def _show_line(self) -> bool:
        """Have this line shown, whatever it is."""
        self._looked = 0
        if self._fence is not None:
            self._show_fence(self._fence)
        else:
            self._mode, self._is_fresh = "words", True
        return True

    def _read_line(self, most: int) -> bool:
        """Take a line that may be something; wait for its end."""
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
        mark = line_shapes.fence_of(line)
        if mark and end >= 0:
            self._fence = Fence(mark, line + "\n")
            self._at = end + 1
            return True
        return self._take_line(line)

    def _read_long_line(self, most: int) -> bool:
        """Hide a mark of which the end is too far away; show everything else."""
        head = self._text[self._at : self._at + most]
        name = line_shapes.name_of(head)
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
        """Take out a whole line, or the control word before it, or nothing."""
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
        """Say what a whole line is that is always taken out."""
        if words := control_words.all_of(line):
            return self._block("control", len(line), control_words.plain(words[0]))
        name = line_shapes.mark_of(line)
        if not name:
            return None
        is_quoted = line_shapes.is_quoted(line) or self._fence is not None
        return self._block("mark", len(line), name, line, is_quoted=is_quoted)

    def _waits(self, line: str) -> Block | None:
        """Say what a line is if that depends on what comes after it."""
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
        """Show words up to the line's end, but for control words there."""
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
        """Take out a call that stands alone; wait for its end."""
        found = self._object
        found.look(self._text, self._at)
        if found.end is not None:
            return self._end_object(found.end)
        if found.is_too_long:
            return self._show_object(tool_json.MOST)
        return self._is_over and self._end_cut_object()

    def _end_object(self, length: int) -> bool:
        """Take out an object that has ended, if it is a call and ends its line."""
        stop = self._at + length
        end = self._text.find("\n", stop)
        rest = self._text[stop : len(self._text) if end < 0 else end]
        is_alone = not rest.strip() and len(rest) <= control_words.TAIL
        if is_alone and end < 0 and not self._is_over:
            return False
        if not (is_alone and tool_json.is_call(self._text[self._at : stop])):
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
        """Show an object that is no call; in it no other is looked for."""
        self._no_object_before = self._passed + self._at + length
        self._mode = "line"
        return self._show_line()

    def _end_cut_object(self) -> bool:
        """Hide a call that the end of the text cut off; show anything else."""
        rest = self._text[self._at :]
        if not tool_json.is_cut_call(rest):
            return self._show_object(len(rest))
        self._shown.note(self._block("tool_json", len(rest)))
        if self._fence is not None:
            self._fence.has_lost = True
        self._at = len(self._text)
        return True

    # --- code -------------------------------------------------------------------------

    def _read_fenced(self, fence: Fence, line: str) -> bool:
        """Take a line of a code block that has shown nothing yet."""
        if line_shapes.closes(fence.mark, line):
            self._at += len(line)
            self._end_fence(fence, line)
            return self._show_line()
        found = self._found_in(line)
        if found is None:
            return self._show_line()
        fence.blocks.append(found)
        return self._keep_fenced(fence, self._at + len(line) + 1)

    def _keep_fenced(self, fence: Fence, end: int) -> bool:
        """Keep a piece back until it is known what else the block holds."""
        end = min(end, len(self._text))
        fence.text += self._text[self._at : end]
        self._at = end
        if len(fence.text) > MOST_FENCED:
            self._show_fence(fence)
        return True

    def _show_fence(self, fence: Fence) -> None:
        """Show a code block after all: it holds what people want to read."""
        self._shown.show(fence.text)
        self._fence, self._code = None, fence.mark
        self._mode, self._is_code_line_new = "code", True

    def _end_fence(self, fence: Fence, line: str) -> None:
        """Take a code block out that held nothing but marks; show an empty one."""
        self._fence = None
        if not (fence.blocks or fence.has_lost):
            self._shown.show(fence.text + line)
            return
        self._shown.gap()
        for block in fence.blocks:
            self._shown.note(block)

    def _read_code(self) -> bool:
        """Show code as it is, up to its end."""
        if self._is_code_line_new:
            head = self._text[self._at : self._at + line_shapes.LOOK]
            line, has_end, _ = head.partition("\n")
            is_whole = has_end or self._is_over or len(head) == line_shapes.LOOK
            if not is_whole and line_shapes.may_close(self._code, line):
                return False
            if is_whole and line_shapes.closes(self._code, line):
                self._shown.show(line)
                self._at += len(line)
                self._code, self._mode = "", "words"
                return True
        end = self._text.find("\n", self._at) + 1
        stop = end or len(self._text)
        self._shown.show(self._text[self._at : stop])
        self._at, self._is_code_line_new = stop, end > 0
        return True
