"""A message as HTML; its Markdown in the dialect that has safe tags only."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from connectors.chat.markup.rendering import rendered_html
from connectors.web.page.sent import enclosed_in

if TYPE_CHECKING:
    from connectors.blobs import BlobFolder
    from connectors.web.page.messages import Message

ALIGNED = re.compile(r'<(t[hd]) style="text-align:(left|center|right)">')
LINK = re.compile(r"<a href=")
OUTWARD = '<a target="_blank" rel="noopener noreferrer" href='


class Safe(str):
    """HTML that is written into a page as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        """Give it as HTML."""
        return self


def said_html(text: str, *, is_agent: bool) -> Safe:
    """Write what somebody says as HTML.

    What people write stands as they wrote it; agents write Markdown. The policy of the
    page forbids the style that tables bring along, so that is a class here. Whatever
    stands in the text itself has no `<` any more when that is replaced.

    Args:
        text: what is said.
        is_agent: whether an agent, or the runtime, says it.
    """
    html = rendered_html(text) if is_agent else ""
    if not html:
        return Safe(f'<p class="as-is">{escape(text)}</p>')
    html = ALIGNED.sub(r'<\1 class="align-\2">', html)
    return Safe(LINK.sub(OUTWARD, html))


def drawn_with(
    message: Message, blobs: BlobFolder | None, *, is_writing: bool
) -> dict[str, object]:
    """Give what `message.html` is drawn with. Called in threads.

    Args:
        message: what was said.
        blobs: has the bytes of files.
        is_writing: whether it goes on.
    """
    html = said_html(message.text, is_agent=message.is_agent)
    return {
        "message": message,
        "html": html,
        "is_writing": is_writing,
        "enclosed": enclosed_in(message, blobs),
    }
