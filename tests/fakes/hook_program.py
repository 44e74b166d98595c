"""A hook program that behaves, or does not, by its first argument."""

from __future__ import annotations

import json
import sys
import threading

ANSWERS = {
    "good": {"action": "continue"},
    "shout": {"action": "change"},
    "refuse": {"action": "cancel", "reason": "not today"},
    "other_place": {"action": "change", "text": "x", "chat": "elsewhere"},
    "other_id": {"id": "999", "action": "cancel", "reason": "liar"},
    "no_action": {},
    "bad_action": {"action": "destroy"},
    "empty": {"action": "change", "text": " "},
    "complains": {"error": "the word list is missing"},
}


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def answer(mode: str, asked: dict[str, object]) -> None:
    if mode == "hang":
        return
    if mode == "crash":
        sys.exit(7)
    if mode == "nonsense":
        say("{")
        say('"moin"')
        say(json.dumps({"id": asked["id"], "action": "continue"}))
        return
    if mode == "flood":
        for number in range(1_000_000):
            say(json.dumps({"id": f"x{number}", "action": "continue"}))
        return
    if mode == "long":
        say("x" * 3_000_000)
        return
    given: dict[str, object] = {"id": asked["id"], **ANSWERS[mode]}
    if mode == "shout":
        given["text"] = str(asked["text"]).upper()
    say(json.dumps(given))


def main() -> None:
    mode = sys.argv[1]
    if mode == "deaf":
        threading.Event().wait()
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            answer(mode, asked)
        else:
            sys.stderr.write(f"told {asked['event']} {asked['ended']['state']}\n")
            sys.stderr.flush()


main()
