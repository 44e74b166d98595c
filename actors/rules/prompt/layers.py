"""Layers of a prompt and their token budgets. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.rules.prompt.estimate import CHARACTERS_PER_TOKEN
from actors.rules.prompt.untrusted import as_item, as_paragraphs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from actors.rules.prompt.brief import PromptMemory


class Layer(msgspec.Struct, frozen=True):
    """One layer of a prompt."""

    name: str
    text: str
    """Empty if it was left out; `why` holds the reason."""

    why: str
    """Its source, and what was cut."""

    tokens: int
    budget: int | None = None
    """Token limit; None: it is never cut."""

    is_fresh: bool = False
    """Whether it belongs to this message alone."""


def tokens(text: str) -> int:
    """Estimate the tokens of a text."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def of_text(
    name: str, text: str, why: str, budget: int | None = None, *, is_fresh: bool = False
) -> Layer:
    """Make a layer of one text; a text over the budget is cut at the end."""
    size = tokens(text)
    if budget is None or size <= budget:
        return Layer(name, text, why, size, budget, is_fresh)
    if budget == 0:
        return Layer(name, "", f"{why}; left out: its budget is 0", 0, 0, is_fresh)
    kept = cut(text, budget)
    why = f"{why}; cut: {size:,} tokens are more than {budget:,}"
    return Layer(name, kept, why, tokens(kept), budget, is_fresh)


def cut(text: str, budget: int) -> str:
    """Keep the beginning of a text, and state how much is missing.

    Args:
        text: longer than the budget.
        budget: tokens, at least 1.
    """
    most = budget * CHARACTERS_PER_TOKEN
    mark = f"\n[… {len(text):,} characters in all, the rest is cut …]"
    room = most - len(mark)
    # Too small for the note: return nothing that could be mistaken for the whole.
    return text[:room].rstrip() + mark if room > 0 else ""


def of_items(
    name: str,
    title: str,
    items: Sequence[str],
    budget: int | None,
    *,
    why: str,
    is_fresh: bool = False,
) -> Layer:
    """Make a layer of a list; items over the budget are left out from the end.

    Args:
        name: name of the layer.
        title: its headline.
        items: the most important first; none contains a headline.
        budget: token limit; None keeps all.
        why: source of the layer.
        is_fresh: as in `Layer`.
    """
    size = len(title)
    kept: list[str] = []
    room = None if budget is None else budget * CHARACTERS_PER_TOKEN
    for item in items:
        size += 1 + len(item)
        if room is not None and size > room:
            break
        kept.append(item)
    missing = len(items) - len(kept)
    if missing:
        why = f"{why}; left out for its budget: {missing} of {len(items)}"
    text = "\n".join((title, *kept)) if kept else ""
    return Layer(name, text, why, tokens(text), budget, is_fresh)


def within(layers: Sequence[Layer], total: int, order: Sequence[str]) -> list[Layer]:
    """Shrink layers until all fit the limit, as far as possible.

    Args:
        layers: in the order of the prompt.
        total: token limit of all layers together.
        order: names of the layers that may shrink, in this order.
    """
    excess = sum([layer.tokens for layer in layers]) - total
    fitted = list(layers)
    for name in order:
        if excess <= 0:
            break
        for at, layer in enumerate(fitted):
            if layer.name == name and layer.text and excess > 0:
                smaller = shrunk(layer, excess)
                excess -= layer.tokens - smaller.tokens
                fitted[at] = smaller
    return fitted


def shrunk(layer: Layer, by: int) -> Layer:
    """Shrink a layer by a number of tokens, or leave it out."""
    room = layer.tokens - by
    text = cut(layer.text, room) if room > 0 else ""
    what = "cut" if text else "left out"
    why = f"{layer.why}; {what}: the model's window is too small for all"
    return msgspec.structs.replace(layer, text=text, why=why, tokens=tokens(text))


def indented(text: str) -> str:
    """Format a text of several lines as one list item."""
    return "- " + as_paragraphs(text).replace("\n", "\n  ")


def listed(entries: Iterable[PromptMemory]) -> list[str]:
    """Format memories as list items."""
    return [
        f"- {as_item(each.key)}: {as_item(each.text)}"
        if each.key
        else f"- {as_item(each.text)}"
        for each in entries
    ]
