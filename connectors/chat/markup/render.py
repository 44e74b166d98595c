"""Markdown in, a platform's markup out: `render` is what other packages call.

The writer walks the tree; the dialect says how each part is written. For clients that
show HTML (Matrix, web pages) the tree is written as that.

Why no pictures and no raw HTML: a client that loads an address tells its server what
stands in the address, and models can be talked into writing one. A picture is a link.

Source: Matrix client-server API, "m.room.message msgtypes", the tags that clients are
to allow; all that is written here is among them.
"""

from __future__ import annotations

import unicodedata
from html import escape

import msgspec

from connectors.chat.markup.dialect import (
    JOINT,
    Align,
    Block,
    Break,
    Code,
    Dialect,
    Fence,
    Heading,
    Inline,
    Item,
    Items,
    Mark,
    Marks,
    MarkupLine,
    Paragraph,
    Piece,
    Quote,
    Rule,
    Table,
    Text,
    WebLink,
    words_of,
)
from connectors.chat.markup.parse import read

RULE = "———"
DONE, OPEN = "☑ ", "☐ "
INDENT = "  "
SIGNS = "*_~`|"


def write(blocks: tuple[Block, ...], dialect: Dialect) -> str:
    """Write a text; its lines, without blank ones at either end."""
    lines = _Writer(dialect).blocks(blocks, 0)
    return "\n".join(line.text for line in lines).strip("\n")


class _Writer:
    """Writes blocks."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def blocks(self, blocks: tuple[Block, ...], depth: int) -> list[MarkupLine]:
        """Write blocks that stand in so many quotes."""
        lines: list[MarkupLine] = []
        for block in blocks:
            if block.gap and lines:
                lines.append(MarkupLine(""))
            lines += self._block(block, depth)
        return lines

    def _block(self, block: Block, depth: int) -> list[MarkupLine]:
        match block:
            case Paragraph() | Heading():
                return self._sentence(block)
            case Fence(text=text, language=language):
                return self._fence(text, language)
            case Rule():
                return [MarkupLine(RULE)]
            case Quote(blocks=inner):
                return self._dialect.quote(self.blocks(inner, depth + 1), depth)
            case Items(items=items):
                return self._items(items, depth)
            case Table():
                return self._table(block)

    def _inline(self, inline: Inline) -> list[MarkupLine]:
        texts = _Sentence(self._dialect).write(self._dialect.prepare(inline))
        return [MarkupLine(text) for text in texts]

    def _sentence(self, heading: Paragraph | Heading) -> list[MarkupLine]:
        if isinstance(heading, Paragraph):
            return self._inline(heading.inline)
        before = self._dialect.heading(heading.level)
        if not before:
            return self._inline(tuple(map(bold, heading.inline)))
        return [MarkupLine(before + line.text) for line in self._inline(heading.inline)]

    def _fence(self, text: str, language: str) -> list[MarkupLine]:
        if not text.strip():
            return []
        return [
            MarkupLine(line, is_flush=True)
            for line in self._dialect.fence(text, language)
        ]

    def _items(self, items: tuple[Item, ...], depth: int) -> list[MarkupLine]:
        lines: list[MarkupLine] = []
        for item in items:
            if item.gap and lines:
                lines.append(MarkupLine(""))
            lines += self._item(item, depth)
        return lines

    def _item(self, item: Item, depth: int) -> list[MarkupLine]:
        marker = self._dialect.bullet if item.number is None else f"{item.number}. "
        if item.is_done is not None:
            marker = DONE if item.is_done else OPEN
        lines = self.blocks(item.blocks, depth)
        if not lines or (lines[0].is_flush and item.blocks):
            return [MarkupLine(marker.rstrip()), *lines]
        first, *others = lines
        return [
            MarkupLine(marker + first.text),
            *(
                line
                if line.is_flush or not line.text
                else MarkupLine(INDENT + line.text)
                for line in others
            ),
        ]

    def _table(self, table: Table) -> list[MarkupLine]:
        rows = aligned(table)
        if rows is not None:
            return self._fence("\n".join(rows), "")
        first, *others = as_lines(table)
        said = [tuple(map(bold, first)), *others]
        return [line for row in said for line in self._inline(row)]


def bold(piece: Piece) -> Piece:
    """Mark a piece as strong."""
    if isinstance(piece, Break) or "strong" in piece.marks:
        return piece
    return msgspec.structs.replace(piece, marks=("strong", *piece.marks))


class _Sentence:
    """Writes one paragraph."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._line = ""
        self._open: list[Mark] = []
        self._is_closed = False
        """Whether the last thing written is the end of a mark."""

    def write(self, inline: Inline) -> list[str]:
        """Give the lines of a paragraph; marks do not go over their ends."""
        lines: list[str] = []
        for piece in inline:
            if isinstance(piece, Break):
                self._close(())
                lines.append(self._line)
                self._line, self._is_closed = "", False
            else:
                self._add(piece)
        self._close(())
        return [*lines, self._line]

    def _add(self, piece: Text | Code | WebLink) -> None:
        known = self._dialect.marks
        marks: Marks = tuple(mark for mark in piece.marks if mark in known)
        self._close(marks)
        opened: list[Mark] = [mark for mark in marks if mark not in self._open]
        opener = "".join(known[mark][0] for mark in opened)
        is_first = not (self._line.strip() or opener)
        said = self._said(piece, is_first=is_first)
        core = said.strip()
        if not core and not self._dialect.is_tagged:
            self._push(said)
            return
        self._open += opened
        if self._dialect.is_tagged:
            self._line += opener + said
            return
        begin = said.index(core)
        self._push(said[:begin])
        self._push(opener + core, is_mark=bool(opener))
        self._push(said[begin + len(core) :])

    def _said(self, piece: Text | Code | WebLink, *, is_first: bool) -> str:
        match piece:
            case Text(text=text):
                return self._dialect.escape(text, is_first=is_first)
            case Code(text=text):
                return self._dialect.code(text)
            case _:
                return self._dialect.link(piece)

    def _push(self, said: str, *, is_mark: bool = False) -> None:
        if not said:
            return
        last = self._line[-1:]
        is_doubled = last == said[0] and last in SIGNS and not self._is_escaped()
        is_inside = self._dialect.needs_edges and (
            (is_mark and last.isalnum()) or (self._is_closed and said[0].isalnum())
        )
        self._line += (JOINT if last and (is_doubled or is_inside) else "") + said
        self._is_closed = False

    def _is_escaped(self) -> bool:
        return self._line.endswith("\\" + self._line[-1:])

    def _close(self, wanted: Marks) -> None:
        """Close what is open and not wanted, and all that was opened after it."""
        kept = 0
        while kept < len(self._open) and self._open[kept] in wanted:
            kept += 1
        ended = [self._dialect.marks[mark][1] for mark in reversed(self._open[kept:])]
        del self._open[kept:]
        if not ended:
            return
        if self._dialect.is_tagged:
            self._line += "".join(ended)
            return
        bare = self._line.rstrip()
        blanks = self._line[len(bare) :]
        self._line = bare + "".join(ended) + blanks
        self._is_closed = not blanks


# Chosen: what a phone that is held upright shows of code without breaking its lines is
# less, what it shows across is more.
MOST_WIDTH = 60
"""Columns of letters; wider tables are not drawn."""

BETWEEN = " | "


def aligned(table: Table) -> list[str] | None:
    """Draw a table for letters of one width.

    Returns:
        None if it is too wide, or has links, which could not be followed there.
    """
    cells = [inline for row in table.rows for inline in row]
    if any(isinstance(piece, WebLink) for inline in cells for piece in inline):
        return None
    rows = [[words_of(inline).strip() for inline in row] for row in table.rows]
    widths = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + len(BETWEEN) * (len(widths) - 1) > MOST_WIDTH:
        return None
    head, *others = (_row(row, widths, table.aligns) for row in rows)
    return [head, "-+-".join("-" * width for width in widths), *others]


def as_lines(table: Table) -> list[Inline]:
    """Give a table row by row, without empty cells at the ends."""
    return [_joined(row) for row in table.rows]


def width_of(text: str) -> int:
    """Count the columns that a text takes where letters have one width."""
    return sum(_width(letter) for letter in text)


def _width(letter: str) -> int:
    if unicodedata.category(letter) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in {"W", "F"} else 1


def _row(row: list[str], widths: list[int], aligns: tuple[Align, ...]) -> str:
    cells = map(_padded, row, widths, aligns)
    return BETWEEN.join(cells).rstrip()


def _padded(text: str, width: int, align: Align) -> str:
    missing = width - width_of(text)
    before = {"right": missing, "center": missing // 2}.get(align, 0)
    return " " * before + text + " " * (missing - before)


def _joined(row: tuple[Inline, ...]) -> Inline:
    cells = list(row)
    while len(cells) > 1 and not cells[-1]:
        cells.pop()
    first, *others = cells
    return (*first, *(piece for cell in others for piece in (Text(BETWEEN), *cell)))


UNSEEN = "\u200b\u2060\ufeff"


def rendered(text: str, dialect: Dialect, most: int = 0) -> str:
    """Write a text, which may be Markdown, in a dialect.

    Args:
        dialect: of the platform; it holds which mentions are allowed.
        most: what the platform takes, in its unit; 0: any.

    Returns:
        What is sent. As it is, with nothing but mentions and escapes mended, if its
        markup has no room, shows nothing, or is nested too deeply: a part that
        `actors/journal/splitting.py` has cut always fits so.
    """
    blocks = read(text)
    said = "" if blocks is None else write(blocks, dialect)
    is_seen = any(not letter.isspace() and letter not in UNSEEN for letter in said)
    if not is_seen or 0 < most < dialect.size(said):
        return dialect.plain(text)
    return said


TAGS: dict[Mark, str] = {"strong": "strong", "em": "em", "strike": "s"}


def as_html(blocks: tuple[Block, ...]) -> str:
    """Write a text as HTML, block by block."""
    return "\n".join(filter(None, map(_html_block, blocks)))


def _html_block(block: Block) -> str:
    match block:
        case Paragraph() | Heading():
            tag = f"h{block.level}" if isinstance(block, Heading) else "p"
            return f"<{tag}>{_html_inline(block.inline)}</{tag}>"
        case Fence(text=text, language=language):
            name = f' class="language-{escape(language)}"' if language else ""
            return f"<pre><code{name}>{escape(text)}\n</code></pre>" if text else ""
        case Rule():
            return "<hr />"
        case Quote(blocks=inner):
            return f"<blockquote>\n{as_html(inner)}\n</blockquote>"
        case Items():
            return _html_items(block)
        case Table():
            return _html_table(block)


def _html_items(items: Items) -> str:
    first = items.items[0].number
    is_tight = not any(
        item.gap or any(block.gap for block in item.blocks) for item in items.items
    )
    inner = "\n".join(_html_item(item, is_tight=is_tight) for item in items.items)
    if first is None:
        return f"<ul>\n{inner}\n</ul>"
    start = "" if first == 1 else f' start="{first}"'
    return f"<ol{start}>\n{inner}\n</ol>"


def _html_item(item: Item, *, is_tight: bool) -> str:
    said = [
        _html_inline(block.inline)
        if is_tight and isinstance(block, Paragraph)
        else _html_block(block)
        for block in _boxed(item)
    ]
    return f"<li>{chr(10).join(filter(None, said))}</li>"


def _boxed(item: Item) -> tuple[Block, ...]:
    """Put a task's box before its first words."""
    match item:
        case Item(
            blocks=(Paragraph(inline=inline), *others), is_done=bool() as is_done
        ):
            return (Paragraph((Text(DONE if is_done else OPEN), *inline)), *others)
        case _:
            return item.blocks


def _html_table(table: Table) -> str:
    head, *others = ([_html_inline(cell) for cell in row] for row in table.rows)
    rows = [
        _html_row("th", head, table.aligns),
        *(_html_row("td", row, table.aligns) for row in others),
    ]
    body = f"\n<tbody>\n{chr(10).join(rows[1:])}\n</tbody>" if others else ""
    return f"<table>\n<thead>\n{rows[0]}\n</thead>{body}\n</table>"


def _html_row(tag: str, cells: list[str], aligns: tuple[Align, ...]) -> str:
    styles = [f' style="text-align:{align}"' if align else "" for align in aligns]
    said = [
        f"<{tag}{style}>{cell}</{tag}>"
        for cell, style in zip(cells, styles, strict=True)
    ]
    return f"<tr>{''.join(said)}</tr>"


def _html_inline(inline: Inline) -> str:
    said: list[str] = []
    opened: list[Mark] = []
    for piece in inline:
        if isinstance(piece, Break):
            said.append("<br />\n")
            continue
        kept = _shared(opened, piece.marks)
        said += [f"</{TAGS[mark]}>" for mark in reversed(opened[kept:])]
        del opened[kept:]
        added: list[Mark] = [mark for mark in piece.marks if mark not in opened]
        said += [f"<{TAGS[mark]}>" for mark in added]
        opened += added
        said.append(_html_piece(piece))
    said += [f"</{TAGS[mark]}>" for mark in reversed(opened)]
    return "".join(said)


def _shared(opened: list[Mark], wanted: Marks) -> int:
    """Count what stays open."""
    for index, mark in enumerate(opened):
        if mark not in wanted:
            return index
    return len(opened)


def _html_piece(piece: Piece) -> str:
    match piece:
        case Text(text=text):
            return escape(text, quote=False)
        case Code(text=text):
            return f"<code>{escape(text, quote=False)}</code>"
        case WebLink(text=text, href=href):
            return f'<a href="{escape(href)}">{escape(text, quote=False)}</a>'
        case Break():
            return "<br />\n"


def rendered_html(text: str) -> str:
    """Write a text as HTML; empty if it is nested too deeply."""
    blocks = read(text)
    return "" if blocks is None else as_html(blocks)
