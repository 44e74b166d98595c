"""Reads Markdown into a tree: CommonMark with tables, strikethrough and bare addresses.

Raw HTML is text. Definitions of links (`[1]: https://…`) are text, too: a part of a
reply must be understood by itself, and one definition could make a short part long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import cast

import msgspec
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

from connectors.chat.markup.dialect import (
    Align,
    Block,
    Break,
    Code,
    Fence,
    Heading,
    Inline,
    Item,
    Items,
    Mark,
    Marks,
    Paragraph,
    Piece,
    Quote,
    Rule,
    Table,
    Text,
    WebLink,
)

# Chosen: nobody reads deeper quotes or lists, and markdown-it leaves out what is
# nested deeper than it may.
MOST_NESTED = 30

MOST_PIPES = 64
"""Columns of a table, about; a line with more makes all of a text have no tables.

Why: markdown-it fills short rows with empty cells, so that 8 KB took 1.3 s."""

# Why from the beginning of a line: begun anywhere, a line without pipes was looked at
# as often as it has characters, and 60 KB took 17 s.
TOO_WIDE = re.compile(rf"^(?:[^|\n]*\|){{{MOST_PIPES}}}", re.MULTILINE)
LONGEST_SCHEME = len("-https")
SCHEME = re.compile(r"(?:^|[^A-Za-z0-9+.-])(https?)$", re.IGNORECASE)
AFTER_SCHEME = re.compile(r"://[^\s<>`|\"\\\x00-\x1f\x7f]{1,2000}")
CLOSERS = {")": "(", "]": "[", "}": "{"}
NO_END = ".,:;!?'*_~"


def bare_address(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - their shape
    """Read an address that stands in the text, so that no mark is found in it."""
    if state.linkLevel > 0 or state.src[state.pos] != ":":
        return False
    scheme = SCHEME.search(state.pending[-LONGEST_SCHEME:])
    found = AFTER_SCHEME.match(state.src, state.pos, state.posMax)
    if scheme is None or found is None:
        return False
    rest = without_end(found[0])
    if len(rest) <= len("://"):
        return False
    if not silent:
        state.pending = state.pending[: -len(scheme[1])]
        opening = state.push("link_open", "a", 1)
        opening.attrs, opening.info = {"href": scheme[1] + rest}, "auto"
        state.push("text", "", 0).content = scheme[1] + rest
        state.push("link_close", "a", -1)
    state.pos += len(rest)
    return True


def without_end(address: str) -> str:
    """Leave out the marks after an address that belong to the sentence."""
    while address:
        last = address[-1]
        opener = CLOSERS.get(last, "")
        is_extra = bool(opener) and address.count(last) > address.count(opener)
        if last not in NO_END and not is_extra:
            return address
        address = address[:-1]
    return address


def make_parser(*, has_tables: bool) -> MarkdownIt:
    """Make a parser; threads may share it.

    It puts its rules together when it reads first, for all to see: so it reads here.
    """
    options = {"html": False, "breaks": True, "maxNesting": MOST_NESTED}
    parser = MarkdownIt("commonmark", options).disable("reference")
    parser = parser.enable(["strikethrough", *(["table"] if has_tables else [])])
    parser.inline.ruler.before("newline", "bare_address", bare_address)
    parser.parse("a")
    return parser


PARSER, WITHOUT_TABLES = make_parser(has_tables=True), make_parser(has_tables=False)


def tokens_of(text: str) -> list[Token]:
    """Read a text into markdown-it's tokens."""
    parser = WITHOUT_TABLES if TOO_WIDE.search(text) else PARSER
    return parser.parse(text)


def is_too_deep(tokens: list[Token]) -> bool:
    """Tell whether something may have been left out."""
    return any(token.level + 1 >= MOST_NESTED for token in tokens)


MARKS: dict[str, Mark] = {"strong": "strong", "em": "em", "s": "strike"}

# Why no others: `tg://user?id=1` calls a person, `javascript:` runs; an address
# without a scheme leads nowhere from a chat.
FOLLOWED = re.compile(r"(?:https?://|mailto:)[^\s]+", re.IGNORECASE)
LOOKS_LIKE_ADDRESS = re.compile(r"\s*(?:https?:/|www\.)", re.IGNORECASE)

TASK = re.compile(r"\[([ xX])\](?:\s+|$)")
CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\x85\u2028\u2029]")
BLANK = " \t>"
PIPE = re.compile(r"(?<!\\)\|")


def read(text: str) -> tuple[Block, ...] | None:
    """Read a text.

    Returns:
        None if it is nested so deeply that something would be lost.
    """
    tokens = tokens_of(text)
    if is_too_deep(tokens):
        return None
    lines = re.split(r"\r\n|\r|\n", text)
    return _Reader(lines).blocks(SyntaxTreeNode(tokens))


class _Reader:
    """Reads blocks."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines

    def blocks(self, parent: SyntaxTreeNode) -> tuple[Block, ...]:
        """Read what stands in a node."""
        found: list[Block] = []
        for node in parent.children:
            gap = bool(found) and self._has_gap(node)
            found.append(self._block(node, gap=gap))
        return tuple(found)

    def _block(self, node: SyntaxTreeNode, *, gap: bool) -> Block:
        match node.type:
            case "fence" | "code_block":
                words = node.info.split()
                language = words[0] if words else ""
                return Fence(node.content.removesuffix("\n"), language, gap)
            case "blockquote":
                return Quote(self.blocks(node), gap)
            case "bullet_list" | "ordered_list":
                return Items(tuple(self._items(node)), gap)
            case "table":
                return self._table(node, gap=gap)
            case "hr":
                return Rule(gap)
            case _:
                return self._sentence(node, gap=gap)

    def _sentence(self, node: SyntaxTreeNode, *, gap: bool) -> Block:
        if node.type == "heading":
            return Heading(int(node.tag[1:]), self._inline(node), gap)
        return Paragraph(self._inline(node), gap)

    def _has_gap(self, node: SyntaxTreeNode) -> bool:
        start = node.map[0] if node.map else 0
        return start > 0 and not self._lines[start - 1].strip(BLANK)

    def _inline(self, node: SyntaxTreeNode) -> Inline:
        return joined(
            piece for child in node.children for piece in pieces(child.children, ())
        )

    def _items(self, node: SyntaxTreeNode) -> Iterator[Item]:
        first = node.attrs.get("start", 1) if node.type == "ordered_list" else None
        for index, child in enumerate(node.children):
            is_done, blocks = task_of(self.blocks(child))
            yield Item(
                blocks,
                None if first is None else int(first) + index,
                is_done,
                gap=index > 0 and self._has_gap(child),
            )

    def _table(self, node: SyntaxTreeNode, *, gap: bool) -> Block:
        rows = [row for part in node.children for row in part.children]
        columns = len(rows[0].children)
        if any(self._is_longer(row, columns) for row in rows):
            # Markdown has it that further cells are not shown; people want them.
            begin, end = node.map or (0, 0)
            texts = [Text(line.strip()) for line in self._lines[begin:end]]
            inline = [piece for text in texts for piece in (text, Break())]
            return Paragraph(tuple(inline[:-1]), gap)
        cells = [tuple(self._inline(cell) for cell in row.children) for row in rows]
        styles = [str(cell.attrs.get("style", "")) for cell in rows[0].children]
        aligns: list[Align] = [align_of(style) for style in styles]
        return Table(tuple(cells), tuple(aligns), gap)

    def _is_longer(self, row: SyntaxTreeNode, columns: int) -> bool:
        begin = row.map[0] if row.map else 0
        line = self._lines[begin].strip(BLANK).removeprefix("|")
        return len(PIPE.findall(line.removesuffix("|"))) >= columns


def pieces(nodes: Sequence[SyntaxTreeNode], marks: Marks) -> Iterator[Piece]:
    """Read what stands in a line."""
    for node in nodes:
        match node.type:
            case "softbreak" | "hardbreak":
                yield Break()
            case "code_inline":
                yield Code(node.content, marks)
            case "strong" | "em" | "s":
                mark = MARKS[node.type]
                inner = marks if mark in marks else (*marks, mark)
                yield from pieces(node.children, inner)
            case "link" | "image":
                yield from _link(node, marks)
            case _:
                # An entity may stand for a line break, or for worse.
                yield Text(CONTROLS.sub(" ", node.content), marks)


def _link(node: SyntaxTreeNode, marks: Marks) -> Iterator[Piece]:
    is_image = node.type == "image"
    href = str(node.attrs.get("src" if is_image else "href", ""))
    inner = joined(pieces(node.children, marks))
    shown = " ".join("".join(map(_shown, inner)).split()) or href
    title = " ".join(str(node.attrs.get("title", "")).split())
    after = f" ({title})" if title else ""
    if not FOLLOWED.fullmatch(href):
        told = f" ({href})" if href != shown else ""
        yield Text(f"{shown}{told}{after}", marks)
        return
    if node.info == "auto":
        shown = href.removeprefix("mailto:")
    link = WebLink(shown, href, _common(inner, marks))
    if LOOKS_LIKE_ADDRESS.match(shown) and not link.is_bare:
        # What looks like an address must not lead to another one.
        yield Text(f"{shown} (", marks)
        link = WebLink(href, href, link.marks)
        after = f"){after}"
    yield link
    if after:
        yield Text(after, marks)


def _shown(piece: Piece) -> str:
    return " " if isinstance(piece, Break) else piece.text


def _common(inner: Inline, marks: Marks) -> Marks:
    """Give the marks of all that is shown of a link."""
    each = [piece.marks for piece in inner if not isinstance(piece, Break)]
    if not each:
        return marks
    return tuple(mark for mark in each[0] if all(mark in other for other in each))


def joined(found: Iterator[Piece]) -> Inline:
    """Join neighbouring texts with the same marks; leave out what is empty."""
    inline: list[Piece] = []
    for piece in found:
        last = inline[-1] if inline else None
        if not isinstance(piece, Break) and not piece.text:
            continue
        match last, piece:
            case Text(text=before, marks=marks), Text(text=after, marks=others) if (
                marks == others
            ):
                inline[-1] = Text(before + after, marks)
            case _:
                inline.append(piece)
    return tuple(inline)


def task_of(blocks: tuple[Block, ...]) -> tuple[bool | None, tuple[Block, ...]]:
    """Tell whether an item is a task, and what it says without its box."""
    match blocks:
        case (Paragraph(inline=(Text(text=text) as first, *rest)) as head, *others):
            found = TASK.match(text)
        case _:
            return None, blocks
    if found is None:
        return None, blocks
    left = msgspec.structs.replace(first, text=text[found.end() :])
    inline = joined(iter((left, *rest)))
    said = msgspec.structs.replace(head, inline=inline)
    return found[1] != " ", (said, *others)


def align_of(style: str) -> Align:
    """Give how a column is aligned."""
    name = style.removeprefix("text-align:")
    return cast("Align", name if name in {"left", "right", "center"} else "")
