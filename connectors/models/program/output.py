"""What a model program printed, as Claude Code's `--output-format json` has it. Pure.

One JSON object on one line, perhaps after others, perhaps the last of an array:
`result`, `session_id`, `num_turns`, `usage`, `total_cost_usd`, `is_error`, and a
`subtype` that says how it ended.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from actors.errors import ModelBusyError, ModelRefusedError
from actors.messages.inbound import Usage

if TYPE_CHECKING:
    from actors.errors import ModelError, ModelFault

MAX_SNIPPET = 200
TURNS_USED_UP = "error_max_turns"

# Source: the program's own messages; each is matched anywhere, without case.
TROUBLES: tuple[tuple[str, ModelFault], ...] = (
    (r"usage limit|credit balance|quota|billing|402", "quota"),
    (r"rate.?limit|too many requests|429", "rate"),
    (r"invalid api key|not logged in|/login|authenticat|unauthori[sz]ed|401", "auth"),
    (r"prompt is too long|context (window|length)|too many tokens", "context"),
    (r"overloaded|529|503|internal server error|500", "overload"),
    (r"network|connection|econn|enotfound|socket|fetch failed", "network"),
    (r"usage polic|content filter", "content"),
)
REFUSED: frozenset[ModelFault] = frozenset({"quota", "auth", "context", "content"})


class ProgramCounts(msgspec.Struct, frozen=True):
    """The program's token counts."""

    input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    output_tokens: int = 0


class ProgramOutput(msgspec.Struct, frozen=True):
    """What the program printed at its end."""

    type: str = "result"
    subtype: str = ""
    is_error: bool = False
    result: str | None = None
    session_id: str = ""
    num_turns: int = 0
    usage: ProgramCounts | None = None
    total_cost_usd: float | None = None

    @property
    def is_cut(self) -> bool:
        """Whether it stopped because it had used up its turns."""
        return self.subtype == TURNS_USED_UP

    @property
    def has_failed(self) -> bool:
        """Whether this is no answer, and not the first part of one."""
        return self.is_error and not self.is_cut

    @property
    def tokens(self) -> Usage:
        """What it took."""
        counts = self.usage or ProgramCounts()
        read = (
            counts.input_tokens
            + counts.cache_creation_input_tokens
            + counts.cache_read_input_tokens
        )
        return Usage(
            max(read, 0),
            max(counts.output_tokens, 0),
            max(counts.cache_read_input_tokens, 0),
            max(self.total_cost_usd or 0.0, 0.0),
        )


def read_output(stdout: bytes) -> ProgramOutput | None:
    """Find the result among what was printed; None if there is none."""
    for line in reversed(stdout.splitlines() or [b""]):
        found = read_line(line.strip())
        if found is not None:
            return found
    return read_line(stdout.strip())


def read_line(line: bytes) -> ProgramOutput | None:
    """Read one line, or all of it; None if that is no result."""
    if not line.startswith((b"{", b"[")):
        return None
    try:
        if line.startswith(b"["):
            line = bytes(msgspec.json.decode(line, type=list[msgspec.Raw])[-1])
        decoded = msgspec.json.decode(line, type=ProgramOutput)
    except (ValueError, RecursionError, IndexError):
        return None
    if decoded.type != "result" or (decoded.result is None and not decoded.subtype):
        return None
    return decoded


def trouble(name: str, said: str) -> ModelError:
    """Make the error for what the program said went wrong.

    Args:
        name: what the program is called, for the text.
        said: its own words, without secrets; may be empty.
    """
    shown = " ".join("".join(c if c.isprintable() else " " for c in said).split())
    text = f"{name}: {shown[:MAX_SNIPPET] or 'it ended without an answer'}"
    for pattern, kind in TROUBLES:
        if re.search(pattern, said, re.IGNORECASE):
            if kind in REFUSED:
                return ModelRefusedError(text, kind=kind)
            return ModelBusyError(text, kind=kind)
    return ModelBusyError(text, kind="protocol")
