"""HTML for clients that show it: Matrix, web pages.

Why no pictures and no raw HTML: a client that loads an address tells its server what
stands in the address, and models can be talked into writing one. A picture is a link.

Source: Matrix client-server API, "m.room.message msgtypes", the tags that clients are
to allow; all that is written here is among them.
"""

from __future__ import annotations

from html import escape

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

TAGS: dict[Mark, str] = {"strong": "strong", "em": "em", "strike": "s"}
BOXES = {True: "☑ ", False: "☐ "}


def as_html(blocks: tuple[Block, ...]) -> str:
    """Write a text as HTML, block by block."""
    return "\n".join(filter(None, map(_block, blocks)))


def _block(block: Block) -> str:
    match block:
        case Paragraph() | Heading():
            tag = f"h{block.level}" if isinstance(block, Heading) else "p"
            return f"<{tag}>{_inline(block.inline)}</{tag}>"
        case Fence(text=text, language=language):
            name = f' class="language-{escape(language)}"' if language else ""
            return f"<pre><code{name}>{escape(text)}\n</code></pre>" if text else ""
        case Rule():
            return "<hr />"
        case Quote(blocks=inner):
            return f"<blockquote>\n{as_html(inner)}\n</blockquote>"
        case Items():
            return _items(block)
        case Table():
            return _table(block)


def _items(items: Items) -> str:
    first = items.items[0].number
    is_tight = not any(
        item.gap or any(block.gap for block in item.blocks) for item in items.items
    )
    inner = "\n".join(_item(item, is_tight=is_tight) for item in items.items)
    if first is None:
        return f"<ul>\n{inner}\n</ul>"
    start = "" if first == 1 else f' start="{first}"'
    return f"<ol{start}>\n{inner}\n</ol>"


def _item(item: Item, *, is_tight: bool) -> str:
    said = [
        _inline(block.inline)
        if is_tight and isinstance(block, Paragraph)
        else _block(block)
        for block in _boxed(item)
    ]
    return f"<li>{chr(10).join(filter(None, said))}</li>"


def _boxed(item: Item) -> tuple[Block, ...]:
    """Put a task's box before its first words."""
    match item:
        case Item(
            blocks=(Paragraph(inline=inline), *others), is_done=bool() as is_done
        ):
            return (Paragraph((Text(BOXES[is_done]), *inline)), *others)
        case _:
            return item.blocks


def _table(table: Table) -> str:
    head, *others = ([_inline(cell) for cell in row] for row in table.rows)
    rows = [
        _row("th", head, table.aligns),
        *(_row("td", row, table.aligns) for row in others),
    ]
    body = f"\n<tbody>\n{chr(10).join(rows[1:])}\n</tbody>" if others else ""
    return f"<table>\n<thead>\n{rows[0]}\n</thead>{body}\n</table>"


def _row(tag: str, cells: list[str], aligns: tuple[Align, ...]) -> str:
    styles = [f' style="text-align:{align}"' if align else "" for align in aligns]
    said = [
        f"<{tag}{style}>{cell}</{tag}>"
        for cell, style in zip(cells, styles, strict=True)
    ]
    return f"<tr>{''.join(said)}</tr>"


def _inline(inline: Inline) -> str:
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
        said.append(_piece(piece))
    said += [f"</{TAGS[mark]}>" for mark in reversed(opened)]
    return "".join(said)


def _shared(opened: list[Mark], wanted: Marks) -> int:
    """Count what stays open."""
    for index, mark in enumerate(opened):
        if mark not in wanted:
            return index
    return len(opened)


def _piece(piece: Piece) -> str:
    match piece:
        case Text(text=text):
            return escape(text, quote=False)
        case Code(text=text):
            return f"<code>{escape(text, quote=False)}</code>"
        case WebLink(text=text, href=href):
            return f'<a href="{escape(href)}">{escape(text, quote=False)}</a>'
        case Break():
            return "<br />\n"
