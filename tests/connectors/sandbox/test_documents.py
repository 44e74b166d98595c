"""Documents are read in the sandbox as it is on this machine."""

from __future__ import annotations

import zlib
from typing import Literal

import pytest

from connectors.config.tools import SandboxConfig
from connectors.media.reader import DocumentError, DocumentReader
from connectors.sandbox.plan import SandboxError, Territory
from connectors.sandbox.runner import open_sandbox
from tests.fakes.media import pdf


async def reader(mode: Literal["bubblewrap", "landlock"]) -> DocumentReader:
    try:
        sandbox = await open_sandbox(SandboxConfig(mode=mode), Territory())
    except SandboxError as error:
        pytest.skip(str(error))
    return DocumentReader(sandbox, 30.0)


@pytest.mark.parametrize("mode", ["bubblewrap", "landlock"])
async def test_words_come_out_of_the_sandbox(
    mode: Literal["bubblewrap", "landlock"],
) -> None:
    documents = await reader(mode)
    assert await documents.read(pdf("one", "two"), "application/pdf", 100) == (
        "one\n\ntwo"
    )
    assert await documents.read(b"<p>a <b>b", "text/html", 100) == "a b"
    with pytest.raises(DocumentError, match=r"it is damaged.*PdfStreamError"):
        await documents.read(b"%PDF-1.4 nonsense", "application/pdf", 100)
    with pytest.raises(DocumentError, match="application/zip"):
        await documents.read(b"PK", "application/zip", 100)


def bomb(size: int) -> bytes:
    """Write a small PDF whose page is so many bytes when it is unpacked twice."""
    head, _, rest = pdf("words").partition(b"<< /Length")
    packed = zlib.compress(zlib.compress(bytes(size), 9), 9)
    filters = b"/Filter [/FlateDecode /FlateDecode]"
    stream = b"<< /Length %d %s >>\nstream\n%s\n" % (len(packed), filters, packed)
    return head + stream + b"endstream" + rest.partition(b"endstream")[2]


async def test_a_page_that_unpacks_to_far_too_much_is_told_and_ends() -> None:
    documents = await reader("landlock")
    large = bomb(100_000_000)
    assert len(large) < 10_000
    with pytest.raises(DocumentError, match="made in an unusual way"):
        await documents.read(large, "application/pdf", 100)
    assert not await documents.read(bomb(1_000), "application/pdf", 100)
