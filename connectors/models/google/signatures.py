"""What Google wants back with a tool call: its own id, and its signed thought.

Why: from Gemini 3 on, a call of the current turn without its `thoughtSignature` is
refused. A transcript keeps neither, so they are remembered here, as long as they may
be wanted; a call that is not remembered, after a restart or from another provider,
gets the word that the documentation gives for such.
"""

from __future__ import annotations

import re
from collections import OrderedDict

import msgspec

MAX_REMEMBERED = 2_048
"""Calls; those of many turns at once. With the bound below at most 32 MB."""

MAX_SIGNATURE = 16 * 1024

# Source: Gemini API, "Thought signatures", on calls that were not made by the model.
UNSIGNED = "skip_thought_signature_validator"
GENERATION = re.compile(r"gemini-(\d+)")


class CallSignature(msgspec.Struct, frozen=True):
    """What a call came with."""

    id: str = ""
    """The provider's own id of the call; empty if it gave none."""

    signature: str = ""


class Signatures:
    """The newest calls of one account, by the model and the id that we gave them."""

    def __init__(self) -> None:
        self._calls: OrderedDict[tuple[str, str], CallSignature] = OrderedDict()

    def keep(self, model: str, call_id: str, remembered: CallSignature) -> None:
        """Remember a call; the oldest is forgotten for it."""
        if remembered == CallSignature() or len(remembered.signature) > MAX_SIGNATURE:
            return
        self._calls[model, call_id] = remembered
        if len(self._calls) > MAX_REMEMBERED:
            self._calls.popitem(last=False)

    def find(self, model: str, call_id: str) -> CallSignature:
        """Find a call; an empty one if it is not known."""
        return self._calls.get((model, call_id), CallSignature())


def wants_signature(model: str) -> bool:
    """Tell whether a model refuses calls without a signature."""
    generation = GENERATION.search(model)
    return generation is not None and int(generation[1]) >= 3
