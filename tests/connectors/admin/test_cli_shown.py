"""What commands show of one company stays the same, word for word.

`shown.txt` has it all. When a change of it is meant, write it anew, and read the
difference before you commit it:

    python -m tests.connectors.admin.test_cli_shown
"""

from __future__ import annotations

import io
import re
import shlex
import sys
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path

from actors.messages.inbound import Address
from actors.people import pairing_rows
from actors.people.identity import Person
from actors.people.pairing_rules import PairingRequest
from actors.people.rows import as_entry
from connectors.cli import run
from runtime.store.rows import Commit
from tests.support.desk import HELP, STREAM, SUM, commit_to, write_database

ROOT = Path(__file__).parents[3]
SHOWN = Path(__file__).with_name("shown.txt")

ANEW = "if this is meant: python -m tests.connectors.admin.test_cli_shown"

SETTINGS = f"""
default_agent = "anna"
store.path = "callboard.db"

[agents.anna]
prompt = "You are Anna."
display_name = "Dr. Anna"
tools = ["calculate"]

[agents.ben]
prompt = "You are Ben."

[connectors.cli]
kind = "terminal"

[models.scripted]
kind = "scripted"
script = "{ROOT}/config/offline_script.toml"

[hooks.shout]
events = ["message_received"]
python = "shout"
"""

NADIA = PairingRequest(
    account="cli/nadia",
    name="Nadia",
    address=Address("cli", "dm"),
    code="K7QM2XBP",
    asked_at=1.0,
    told_at=1.0,
    until=4_000_000_000.0,
)

TABLES = (
    "queue list",
    "queue list --state completed --state failed",
    "queue list --unsent",
    f"queue show {SUM}",
    f"queue show {HELP}",
    "audit",
    "audit --chat cli/kitchen --sender Sam --limit 2",
    *(f"usage --by {by}" for by in ("agent", "sender", "model", "account")),
    "replay",
    f"replay {STREAM}",
    "agents list",
    "people list",
    "pairing list",
    "tasks",
    "schedule list",
    "hooks list",
    "tools list",
    "webhooks list",
    "clients list",
    "route explain 'hello Ben' --chat cli/kitchen --sender sam --group",
    "config explain limits.max_open",
)
"""Shown for people, and for programs."""

TEXTS = (
    "records check",
    f"conversations export {STREAM}",
    "queue show nobody",
    "replay nobody",
    "prompt nobody",
    "route explain hello --chat nowhere/kitchen",
    "config explain limits.most_open",
    "agents show anna",
)

MOMENT = re.compile(
    r"\b1\d{9}\.\d+|"  # Unix seconds
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[+-]\d\d:\d\d|Z)?"
)
LATER = 5000
"""Seconds after the first; what is as late is due at some time from now."""

AGE = re.compile(r"(?<=  )(?:\d\dm|\dh )(?=  )")
"""In a column of a table that is three wide."""


def called(line: str) -> str:
    """Run a command, and give what it shows."""
    written = io.BytesIO()
    output = io.TextIOWrapper(written, "utf-8", write_through=True)
    with redirect_stdout(output), redirect_stderr(output):
        status = run(shlex.split(line))
    text = written.getvalue().decode()
    return f"$ callboard {line}\n{text.rstrip()}\n[{status}]\n"


def steady(text: str, folder: Path) -> str:
    """Replace what is another each time: moments by the seconds since the first."""
    text = text.replace(str(folder), "<folder>").replace(str(ROOT), "<root>")
    first = min(each for each in map(second, MOMENT.findall(text)) if each > 1)

    def since(found: re.Match[str]) -> str:
        seconds = second(found[0]) - first
        return "once" if seconds < 0 else f"+{seconds}" if seconds < LATER else "later"

    return AGE.sub("~1h", MOMENT.sub(since, text))


def second(moment: str) -> int:
    """Read a moment, in whole Unix seconds: tables show no parts of them."""
    if "-" not in moment:
        return int(float(moment))
    found = datetime.fromisoformat(moment)
    return int(found.replace(tzinfo=found.tzinfo or UTC).timestamp())


def shown(folder: Path) -> str:
    """Run all commands on a company in a folder."""
    (folder / "callboard.toml").write_text(SETTINGS)
    write_database(folder / "callboard.db")
    entries = (pairing_rows.as_request(NADIA), as_entry(Person("cli/sam", "Sam"), 0))
    commit_to(folder / "callboard.db", Commit(at=1.0, entries=entries))
    lines = [each for line in TABLES for each in (line, f"{line} --json")]
    with chdir(folder):
        return steady("\n".join(map(called, (*lines, *TEXTS))), folder)


def test_commands_show_the_same_of_the_same(tmp_path: Path) -> None:
    found = shown(tmp_path).splitlines()
    assert found == SHOWN.read_text().splitlines(), ANEW


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        SHOWN.write_text(shown(Path(name)))
    sys.exit(0)
