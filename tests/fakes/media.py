"""Attachments to test with, and whoever reads them."""

from __future__ import annotations

import trio

from connectors.fetch.messages import Fetched, FetchRefusedError, FetchRequest
from connectors.media.extract import ExtractError, extract
from connectors.media.reader import DocumentError

PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)
OGG = b"OggS" + bytes(40)


def pdf(*pages: str) -> bytes:
    """Write a small PDF with a line of text on each page."""
    kids = " ".join(f"{3 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
    ]
    for number, text in enumerate(pages):
        drawn = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET"
        font = "<< /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>"
        page = f"/Resources << /Font {font} >> /Contents {4 + 2 * number} 0 R"
        box = "/Parent 2 0 R /MediaBox [0 0 400 200]"
        objects.append(f"<< /Type /Page {box} {page} >>")
        stream = f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream"
        objects.append(stream)
    body = b"%PDF-1.4\n"
    places: list[int] = []
    for number, text in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n".encode()
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    size = len(objects) + 1
    head = f"xref\n0 {size}\n0000000000 65535 f \n{table}"
    tail = f"trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return body + head.encode() + tail.encode()


class FakeFetches:
    """The guarded way out, with a few pages behind it.

    Args:
        pages: what is at which address; anything else is not allowed.
        status: what every answer's status is.
    """

    def __init__(self, pages: dict[str, bytes], status: int = 200) -> None:
        self._pages = pages
        self._status = status
        self.asked: list[str] = []
        self.owners: list[str] = []

    async def fetch(self, request: FetchRequest) -> Fetched:
        self.asked.append(request.url)
        self.owners.append(request.owner)
        await trio.lowlevel.checkpoint()
        if request.url not in self._pages:
            raise FetchRefusedError("that address is not public")
        return Fetched(
            url=request.url,
            status=self._status,
            headers={},
            body=self._pages[request.url],
            media_type="",
        )


class FakeDocuments:
    """Reads documents in this process.

    Args:
        seconds: how long each takes.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds
        self.owners: list[str] = []

    async def read(
        self, document: bytes, media_type: str, most: int, owner: str = ""
    ) -> str:
        self.owners.append(owner)
        await trio.sleep(self._seconds)
        try:
            return extract(media_type, document, most)
        except ExtractError as error:
            raise DocumentError(str(error)) from error


class FakeTranscriber:
    """Hears the same words in every recording.

    Args:
        outcome: the words, or what is raised.
    """

    def __init__(self, outcome: str | Exception) -> None:
        self._outcome = outcome
        self.heard: list[str] = []

    async def transcribe(self, recording: bytes, media_type: str) -> str:
        assert recording
        self.heard.append(media_type)
        await trio.lowlevel.checkpoint()
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome

    async def aclose(self) -> None:
        """Do nothing."""


class FakeSpeaker:
    """Speaks texts as their own bytes.

    Args:
        answer: what it gives instead, or raises; None: the text.
    """

    media_type = "audio/mpeg"
    max_chars = 100

    def __init__(self, answer: bytes | Exception | None = None) -> None:
        self._answer = answer
        self.asked: list[tuple[str, str]] = []
        """Texts and voices."""

    async def speak(self, text: str, voice: str = "") -> bytes:
        """Give the recording, or raise."""
        await trio.lowlevel.checkpoint()
        self.asked.append((text, voice))
        if isinstance(self._answer, Exception):
            raise self._answer
        return text.encode() if self._answer is None else self._answer

    async def aclose(self) -> None:
        """Do nothing."""
        await trio.lowlevel.checkpoint()
