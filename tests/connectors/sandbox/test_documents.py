"""Documents are read in the sandbox as it is on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from connectors.config.tools import SandboxConfig
from connectors.media.reader import DocumentError, DocumentReader
from connectors.sandbox.choose import open_sandbox
from connectors.sandbox.plan import SandboxError
from connectors.sandbox.territory import Territory
from tests.fakes.media import pdf

if TYPE_CHECKING:
    from typing import Literal


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
