"""Forms with a file, read as they come; bounded in bytes and in time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from connectors.web.eliza.errors import wrong
from connectors.web.eliza.uploads import KINDS
from connectors.web.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.requests import Request

    from connectors.web.eliza.desk import Call

FORM = 65_536
"""Bytes of a form beside its file."""

MULTIPART = "multipart/form-data"


class Taken(msgspec.Struct, frozen=True):
    """A file that came with a form."""

    name: str
    kind: str
    """One of `KINDS`."""

    content: bytes
    fields: dict[str, str] = {}
    """What else stands in the form."""


def is_form(request: Request) -> bool:
    """Whether a request brings a form that may have a file."""
    media = request.headers.get("content-type", "").partition(";")[0]
    return media.strip().lower() == MULTIPART


async def read_file(call: Call, limit: int) -> Taken:
    """Read a form's file, in the field `file`.

    Args:
        call: the request.
        limit: bytes of the file.

    Raises:
        ApiError: there is none, it is too long, too slow, or of another kind.
    """
    request, settings = call.request, call.front.settings
    if not is_form(request):
        text = f"send the file as {MULTIPART}, in the field 'file'"
        raise ApiError(400, text, code="invalid_content_type")
    stream = limited(request, limit + FORM, limit)
    parser = MultiPartParser(request.headers, stream, max_files=1, max_fields=8)
    try:
        async with asyncio.timeout(settings.body_timeout):
            form = await parser.parse()
    except TimeoutError:
        text = f"the file did not come within {settings.body_timeout:g} s"
        raise ApiError(408, text, code="body_timeout") from None
    except MultiPartException as error:
        raise wrong(f"no form: {error.message}") from error
    try:
        return await taken_of(form, limit)
    finally:
        await form.close()


async def taken_of(form: FormData, limit: int) -> Taken:
    """Read the file of a form.

    Raises:
        ApiError: there is none, it is too long, or of another kind.
    """
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise wrong("is missing", "file")
    content = await file.read()
    name, kind = file.filename or "file", file.content_type or ""
    kind = kind.partition(";")[0].strip().lower()
    if ".." in name or "/" in name or "\\" in name:
        raise wrong("has a path in its name", "file")
    if kind not in KINDS:
        raise wrong(f"of the type {kind or 'unknown'!r} is not taken", "file")
    if len(content) > limit:
        raise too_long(limit)
    fields = {key: value for key, value in form.items() if isinstance(value, str)}
    return Taken(name, kind, content, fields)


async def limited(request: Request, most: int, limit: int) -> AsyncGenerator[bytes]:
    """Give a body piece by piece, as far as it may go.

    Args:
        request: whose body.
        most: bytes of it.
        limit: bytes of its file, for people.

    Raises:
        ApiError: 413.
    """
    count = 0
    async for part in request.stream():
        count += len(part)
        if count > most:
            raise too_long(limit)
        yield part


def too_long(limit: int) -> ApiError:
    """Make the error for a file that is too long."""
    text = f"the file is longer than {limit} bytes"
    return ApiError(413, text, code="file_too_large")
