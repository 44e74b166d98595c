"""Documents become text, in a confined child that may break without harm."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from connectors.media import extract
from connectors.sandbox.plan import MIB, Confinement, Limits, SandboxError

if TYPE_CHECKING:
    from connectors.sandbox.runner import Sandbox

PROGRAM = Path(extract.__file__).resolve()

LIMITS = Limits(memory=768 * MIB, cpu=20.0, processes=8, file_size=MIB, open_files=64)
"""Chosen: a PDF of 10 MiB with pictures takes 300 MiB and some seconds."""

WHY = {
    extract.NO_PYPDF: "PDF files need pypdf: pip install 'callboard[documents]'",
}

BYTES_PER_CHARACTER = 4


class DocumentError(Exception):
    """A document could not be read; the text says why, without its name."""


class DocumentReader:
    """Gives the words of documents.

    Args:
        sandbox: confines the child that reads them.
        seconds: how long that may take.
    """

    def __init__(self, sandbox: Sandbox, seconds: float) -> None:
        self._sandbox = sandbox
        self._seconds = seconds

    async def read(self, document: bytes, media_type: str, most: int) -> str:
        """Give a document's text.

        Args:
            document: the file's content.
            media_type: what it is, by its bytes.
            most: characters of text; one more comes back where there is more.

        Raises:
            DocumentError: it cannot be read.
        """
        try:
            ended = await self._sandbox.run(
                [sys.executable, "-I", str(PROGRAM), media_type, str(most)],
                confinement=Confinement(readable=(PROGRAM.parent,), limits=LIMITS),
                cwd=PROGRAM.parent,
                stdin=document,
                timeout=self._seconds,
                max_output=(most + 1) * BYTES_PER_CHARACTER,
            )
        except SandboxError as error:
            raise DocumentError(f"it cannot be read safely here: {error}") from error
        if ended.timed_out:
            raise DocumentError(f"reading it took longer than {self._seconds:g} s")
        if ended.returncode != 0:
            said = ended.stderr.decode("utf-8", "replace").strip().splitlines()
            why = WHY.get(ended.returncode) or (said[-1][:200] if said else "")
            raise DocumentError(why or "it needs more memory or time than allowed")
        return ended.stdout.decode("utf-8", "replace")
