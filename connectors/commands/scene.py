"""One thing that happened in a conversation, written for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.commands.printing import first_words, indented
from connectors.office.moments import NONE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectors.office.scene import Scene

WIDEST = 9
"""Characters of the longest word for what happened."""


def lines_of(scene: Scene) -> Iterator[str]:
    """Write a scene for people: when, what, and its words."""
    at = (scene.at or NONE).replace(".000", "")
    head = f"{at:<29}  {scene.what:<{WIDEST}}  "
    words = [f"{scene.who}: {scene.text}" if scene.who else scene.text]
    words += [f"calls {call.name} {call.arguments}" for call in scene.calls]
    words.append(", ".join(details(scene)))
    text = "\n".join(each for each in words if each)
    yield f"{head}{indented(text, len(head))}".rstrip()


def details(scene: Scene) -> Iterator[str]:
    """Give what is known beside the words."""
    if scene.delivery:
        yield f"{scene.delivery} {scene.state}"
    if scene.reason not in {"", "ok"}:
        yield f"reason {scene.reason}"
    if scene.run is not None:
        run = scene.run
        yield f"attempt {run.attempt} with {run.provider}"
        yield f"{run.seconds:.2f} s"
        yield f"{run.usage.input_tokens} + {run.usage.output_tokens} tokens"
    if scene.due_at:
        yield f"again at {scene.due_at}"
    if scene.attempts:
        yield f"{scene.attempts} attempt{'' if scene.attempts == 1 else 's'}"
    if scene.proof:
        yield f"receipt {scene.proof}"
    if scene.receipt:
        yield f"receipt {first_words(scene.receipt, 80)}"
