"""The platform's markup: capitals for what is bold, and no other signs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from connectors.chat.markup.dialect import Mark, Plain


@dataclass(frozen=True)
class Postcard(Plain):
    """Bold is written between equals signs; see `Dialect`."""

    marks: ClassVar[Mapping[Mark, tuple[str, str]]] = {"strong": ("=", "=")}
