"""The words of one document: a program of its own, which runs confined.

Reads a document from standard input, writes its text to standard output as UTF-8.
Imports nothing of Callboard, so that it can be started where nothing else of it can
be read. What it is given may be made to break it: whoever starts it bounds its time
and memory.

    python -I extract.py <media type> <most characters>  < document

Exit codes: 0; 3 for a document that cannot be read, 4 for a kind that is unknown
here, 5 for a PDF without pypdf. One line on standard error says more.
"""

from __future__ import annotations

import importlib
import io
import sys
from html.parser import HTMLParser
from typing import Any

UNREADABLE, UNKNOWN, NO_PYPDF = 3, 4, 5

BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
SILENT = frozenset({"head", "noscript", "script", "style", "svg", "template"})
BLOCKS = frozenset(
    {
        "address",
        "article",
        "aside",
        "blockquote",
        "br",
        "dd",
        "div",
        "dl",
        "dt",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "table",
        "tr",
        "ul",
    }
)
CELLS = frozenset({"td", "th"})


class ExtractError(Exception):
    """The document cannot be read; the text says why."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


class PageText(HTMLParser):
    """The words of an HTML page, a line for each block.

    Args:
        most: characters after which the rest is passed over.
    """

    def __init__(self, most: int) -> None:
        super().__init__(convert_charrefs=True)
        self._left = most
        self._hidden: list[str] = []
        self._pieces: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a block, or something that nobody sees."""
        del attrs
        if tag in SILENT:
            self._hidden.append(tag)
        elif tag in BLOCKS:
            self._pieces.append("\n")
        elif tag in CELLS:
            self._pieces.append("\t")

    def handle_endtag(self, tag: str) -> None:
        """End what was begun; a page with tags left open shows its words still."""
        if tag in self._hidden:
            while self._hidden.pop() != tag:
                pass
        elif tag in BLOCKS:
            self._pieces.append("\n")

    def handle_data(self, data: str) -> None:
        """Take words."""
        if not self._hidden and self._left > 0:
            self._pieces.append(data[: self._left])
            self._left -= len(data)

    def text(self) -> str:
        """Give the words, spaces and empty lines made few."""
        lines = (" ".join(line.split()) for line in "".join(self._pieces).splitlines())
        kept: list[str] = []
        for line in lines:
            if line or (kept and kept[-1]):
                kept.append(line)
        return "\n".join(kept).strip()


def decode(document: bytes) -> str:
    """Read letters, whatever they were written in."""
    for mark, charset in BOMS:
        if document.startswith(mark):
            return document[len(mark) :].decode(charset, "replace")
    try:
        return document.decode()
    except UnicodeDecodeError:
        return document.decode("cp1252", "replace")


def read_html(document: bytes, most: int) -> str:
    """Give the words of a page."""
    page = PageText(4 * most)
    page.feed(decode(document))
    page.close()
    return page.text()


def read_pdf(document: bytes, most: int) -> str:
    """Give the words of a PDF, page by page, until there are enough.

    Raises:
        ExtractError: pypdf is not installed, or cannot read it.
    """
    try:
        # Any: pypdf is optional, and its types are not installed everywhere.
        pypdf: Any = importlib.import_module("pypdf")
    except ImportError as error:
        raise ExtractError("pypdf is not installed", NO_PYPDF) from error
    reader = pypdf.PdfReader(io.BytesIO(document))
    if reader.is_encrypted and not reader.decrypt(""):
        raise ExtractError("it is encrypted", UNREADABLE)
    texts: list[str] = []
    length = 0
    for page in reader.pages:
        texts.append(str(page.extract_text()).strip())
        length += len(texts[-1])
        if length > most:
            break
    return "\n\n".join(text for text in texts if text)


def extract(media_type: str, document: bytes, most: int) -> str:
    """Give a document's text, at most one character more than asked for.

    Raises:
        ExtractError: it cannot be read.
    """
    kind, _, what = media_type.partition("/")
    if media_type == "application/pdf":
        text = read_pdf(document, most)
    elif media_type in {"text/html", "application/xhtml+xml"}:
        text = read_html(document, most)
    elif kind == "text" or what in {"json", "xml", "yaml", "toml", "x-ndjson"}:
        text = decode(document)
    else:
        raise ExtractError(f"files of type {media_type} are not read", UNKNOWN)
    clean = "".join(c for c in text[: most + 1] if c >= " " or c in "\n\t")
    return clean.strip()


def main(arguments: list[str]) -> int:
    """Do it; give the exit code."""
    media_type, most = arguments
    document = sys.stdin.buffer.read()
    try:
        text = extract(media_type, document, int(most))
    except ExtractError as error:
        sys.stderr.write(f"{error}\n")
        return error.code
    except Exception as error:  # noqa: BLE001  a parser fed with anything may fail so
        kind = type(error).__name__
        sys.stderr.write(f"it is damaged, or made in an unusual way ({kind})\n")
        return UNREADABLE
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
