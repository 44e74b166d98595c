"""The platform's markup: capitals for what is bold, and no other signs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from connectors.chat.markup.dialect import Plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connectors.chat.markup.dialect import Mark


@dataclass(frozen=True)
class Postcard(Plain):
    """Bold is written between equals signs; see `Dialect`."""

    marks: ClassVar[Mapping[Mark, tuple[str, str]]] = {"strong": ("=", "=")}
