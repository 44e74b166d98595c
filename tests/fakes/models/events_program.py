"""A program that speaks as Codex does, played by its prompt's last line.

Run as `python events_program.py exec --json [resume ID]` in a conversation's folder;
its sessions are files there, with how many turns each has had. Words it knows: `say X`,
`think X` (says something else before), `fail X` (an error it reports), `crash X` (an
error it does not report), `silent`, `recall` (whether it was told all).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

READ, CACHED, WRITTEN = 10, 4, 3
"""Tokens of each turn."""


def tell(kind: str, **fields: object) -> None:
    """Print an event."""
    sys.stdout.write(json.dumps({"type": kind, **fields}) + "\n")


def message(text: str) -> None:
    """Print what it says."""
    item = {"id": "item_1", "type": "agent_message", "text": text}
    tell("item.completed", item=item)


def session(arguments: list[str]) -> Path:
    """Go on with a session, or begin one; give its file."""
    if "resume" not in arguments:
        found = Path(f"thread-{len(list(Path().glob('thread-*')))}")
        found.write_text("0")
        return found
    found = Path(arguments[arguments.index("resume") + 1])
    if not found.exists():
        sys.exit(f"Error: thread/resume failed: no rollout found for {found}")
    return found


def main() -> None:
    """Play what the prompt says."""
    prompt = sys.stdin.read()
    sys.stderr.write("Reading prompt from stdin...\n")
    last = prompt.rstrip().rpartition("\n")[2].partition(": ")[2]
    word, _, rest = last.partition(" ")
    if word == "crash":
        sys.exit(rest)
    kept = session(sys.argv[1:])
    turns = int(kept.read_text()) + 1
    kept.write_text(str(turns))
    tell("thread.started", thread_id=kept.name)
    odd = {"id": "item_0", "type": "error", "message": "no such model is known"}
    tell("item.completed", item=odd)
    tell("turn.started")
    if word == "fail":
        tell("error", message=f"Reconnecting... 1/5 ({rest})")
        tell("turn.failed", error={"message": rest})
        sys.exit(1)
    if word == "think":
        message("I think first.")
    if word != "silent":
        message(str("<conversation>" in prompt) if word == "recall" else rest)
    usage = {"input_tokens": READ * turns, "cached_input_tokens": CACHED * turns}
    tell("turn.completed", usage=usage | {"output_tokens": WRITTEN * turns})


if __name__ == "__main__":
    main()
