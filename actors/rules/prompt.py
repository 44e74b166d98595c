"""What a model is told before it hears a word; pure.

The simplest form: the persona's files, the configured prompt, and how to hand
work to a colleague. Layers with budgets come later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

DELEGATE = "delegate"
"""Name of the tool by which an agent hands work on."""


def system_prompt(
    name: str, files: str, prompt: str, colleagues: Mapping[str, str]
) -> str:
    """Put the system prompt together.

    Args:
        name: the agent's name.
        files: text of the persona's folder; may be empty.
        prompt: what the settings say; may be empty.
        colleagues: whom it may hand work to: name and description.
    """
    parts = [files.strip(), prompt.strip()]
    if not any(parts):
        parts = [f"You are {name}, an assistant. Answer briefly."]
    if colleagues:
        known = "\n".join(
            f"- {each}: {what}" if what else f"- {each}"
            for each, what in colleagues.items()
        )
        first = next(iter(colleagues))
        parts.append(
            "You may hand a task to a colleague, who answers in this chat under their"
            f" own name:\n{known}\nTo do so write"
            f" [DELEGATE:{first}] the task in one paragraph [/DELEGATE]."
        )
    return "\n\n".join(part for part in parts if part)
