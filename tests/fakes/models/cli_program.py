"""A program that speaks as Claude Code does, played by its prompt's last line.

Run as `python cli_program.py <flags>` in a conversation's folder; its sessions are
files there. Words it knows: `say X`, `turns N X` (stops for its turns), `fail X`
(an error it reports), `crash X` (an error it does not report), `costs X` (dollars),
`garbage`, `env`, `prompt`, `servers` (the file with servers of tools), `files` (the
pictures that came along), `recall` (how often this session was asked).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


ASKED = [""]
"""The prompt."""


def finish(**fields: object) -> None:
    """Print the result and end."""
    counts = {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 3}
    whole = {"type": "result", "subtype": "success", "is_error": False}
    sys.stdout.write(json.dumps({**whole, "usage": counts, **fields}) + "\n")
    raise SystemExit(0)


def session(arguments: list[str]) -> str:
    """Go on with a session, or begin one; give its id."""
    if "--resume" not in arguments:
        name = f"session-{len(list(Path().glob('session-*')))}"
        Path(name).write_text("0")
        return name
    name = arguments[arguments.index("--resume") + 1]
    if not Path(name).exists():
        sys.stderr.write(f"No conversation found with session ID: {name}\n")
        raise SystemExit(1)
    return name


def turns(name: str, rest: str) -> None:
    """Stop for the number of turns, a few times."""
    left, _, words = rest.partition(" ")
    Path("left").write_text(f"{int(left) - 1} {words}")
    if int(left) > 0:
        cut = {"subtype": "error_max_turns", "is_error": True}
        finish(result=f"part {left}", session_id=name, **cut)
    finish(result=words, session_id=name)


def crash(_: str, rest: str) -> None:
    """End with a complaint and nothing else."""
    sys.stderr.write(rest + "\n")
    raise SystemExit(3)


def files(name: str, _: str) -> None:
    """Say which pictures there are."""
    named = ASKED[0].split("[Attached image: ")[1:]
    paths = [Path(each.partition("]")[0]) for each in named]
    found = [f"{path.suffix}:{path.stat().st_size}" for path in paths]
    finish(result=" ".join(found), session_id=name)


def recall(name: str, _: str) -> None:
    """Say how often this session was asked, and whether it was told all."""
    count = int(Path(name).read_text())
    finish(result=f"{count} {'<conversation>' in ASKED[0]}", session_id=name)


def say(name: str, rest: str) -> None:
    """Say it, among other things."""
    sys.stderr.write("a warning\n")
    sys.stdout.write("a line before\n")
    finish(result=rest, session_id=name)


def garbage(_name: str, _rest: str) -> None:
    """Print what is no result."""
    sys.stdout.write("{not json\n")


WORDS: dict[str, Callable[[str, str], None]] = {
    "say": say,
    "turns": turns,
    "crash": crash,
    "files": files,
    "recall": recall,
    "fail": lambda name, rest: finish(result=rest, is_error=True, session_id=name),
    "garbage": garbage,
    "prompt": lambda name, _: finish(result=ASKED[0], session_id=name),
    "servers": lambda name, _: finish(
        result=Path(sys.argv[sys.argv.index("--mcp-config") + 1]).read_text(),
        session_id=name,
    ),
    "costs": lambda name, rest: finish(
        result="dear", total_cost_usd=json.loads(rest), session_id=name
    ),
    "env": lambda name, _: finish(result=" ".join(os.environ), session_id=name),
}


def main() -> None:
    """Play what the prompt says."""
    prompt = ASKED[0] = sys.stdin.read()
    name = session(sys.argv[1:])
    Path(name).write_text(str(int(Path(name).read_text()) + 1))
    last = prompt.rstrip().rpartition("\n")[2].partition(": ")[2]
    word, _, rest = last.partition(" ")
    if prompt.startswith("Go on"):
        word, rest = "turns", Path("left").read_text()
    WORDS[word](name, rest)


if __name__ == "__main__":
    main()
