"""What is drawn on a screen is harmless, fits, and leaves nothing out."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest
from hypothesis import example, given, settings, strategies as st
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from rich.cells import cell_len

from actors.messages.deliveries import Draft
from actors.messages.inbound import Address
from connectors.chat.terminal import client, screen
from connectors.chat.terminal.client import (
    ShownAgent,
    TerminalDraft,
    TerminalRoster,
    files_in,
)
from connectors.chat.terminal.screen import (
    QUESTION,
    ChatCompleter,
    DraftView,
    Painter,
    open_history,
)

STYLE = re.compile(r"\x1b\[[0-9;]*m")
ANNA = ShownAgent("anna", "Dr. Anna", "greets people", "main")
ROSTER = TerminalRoster((ANNA,), "anna", (("stop", "stop it"), ("status", "tell")))


def plain(drawn: str) -> str:
    return STYLE.sub("", drawn)


@example("word " * 20, 3)
@example("word" * 20, 20)
@given(
    st.text(st.characters() | st.sampled_from("\x1b\x9b|*`#-\n")),
    st.integers(20, 120),
)
def test_nothing_that_is_said_controls_the_screen_or_is_too_wide(
    text: str, columns: int
) -> None:
    painter, most = Painter(lambda: columns), max(20, columns)
    for drawn in (painter.answer(text, text), painter.notice(text)):
        shown = plain(drawn)
        assert all(c.isprintable() or c in "\t\n" or ord(c) > 0x9F for c in shown)
        assert all(cell_len(line.expandtabs()) <= most for line in shown.split("\n"))


@settings(max_examples=30)  # six drawings each
@given(st.lists(st.text("abcäß日🙂", min_size=1, max_size=90), min_size=1, max_size=9))
def test_no_word_of_an_answer_is_left_out(words: list[str]) -> None:
    painter = Painter(lambda: 40)
    table = f"| {' | '.join(words[:3])} |\n|{'---|' * len(words[:3])}\n"
    for text in (" ".join(words), "\n".join(words), f"```\n{' '.join(words)}\n```"):
        shown = re.sub(r"\s", "", plain(painter.answer("anna", text)))
        assert "".join(words) in shown
    shown = plain(painter.answer("anna", table))
    assert all(shown.count(c) >= table.count(c) for c in "abcäß日🙂")


def test_an_answer_looks_like_this() -> None:
    text = "# Plan\none\ntwo <b>bold</b> [red]\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    text += "\n```py\nx = 1\n```\n[here](https://example.org)"
    drawn = Painter(lambda: 40).answer("anna", text)
    lines = [line for line in plain(drawn).split("\n") if line]
    assert lines == [
        *("anna", "  Plan", "  one", "  two <b>bold</b> [red]"),
        *("   a  b", "   ────", "   1  2", "    x = 1"),
        "  here (https://example.org)",
    ]


def test_a_notice_of_several_lines_stands_out() -> None:
    assert Painter(lambda: 40).notice("Here:\n@anna") == "* Here:\n  @anna\n"


def test_a_line_of_a_notice_that_is_too_wide_goes_on_further_in() -> None:
    text = "/stop [all] - stop what you asked here\n/who - list the agents"
    assert Painter(lambda: 30).notice(text) == (
        "* /stop [all] - stop what\n    you asked here\n  /who - list the agents\n"
    )


def test_no_colour_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    drawn = Painter(lambda: 40).answer("anna", "`code`")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", drawn)


def luminance(red: int, green: int, blue: int) -> float:
    """Give the relative luminance of WCAG 2."""
    parts = [x / 255 for x in (red, green, blue)]
    linear = [x / 12.92 if x <= 0.04 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_each_colour_is_read_on_white_and_on_black(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    painter = Painter(lambda: 80)
    text = "# One\n\n`two` and [three](http://x)\n\n```\nfour\n```\n> five\n\n- six"
    drawn = painter.answer("anna", text) + painter.question("May I?")
    drawn += painter.person("hello") + painter.banner(ROSTER, "here")
    used = set(re.findall(r"\x1b\[(?:\d+;)*((?:[34]|9|10)[0-9])(?:;\d+)*m", drawn))
    assert used == {"35"}, "no background, and none of the bright colours"
    seen = luminance(205, 0, 205)  # what xterm shows for it
    assert min((seen + 0.05) / 0.05, 1.05 / (seen + 0.05)) > 4


def test_the_banner_says_who_is_here() -> None:
    shown = plain(Painter(lambda: 200).banner(ROSTER, "here"))
    assert "Dr. Anna (@anna)  model main  answers when nobody is named" in shown
    assert "Ctrl-C stops an answer, then leaves" in shown


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("/st", ["/stop", "/status"]),
        ("/q", ["/quit"]),
        ("hi @a", ["@anna"]),
        ("hi /st", []),
        ("@z", []),
    ],
)
def test_what_is_completed(typed: str, offered: list[str]) -> None:
    completer = ChatCompleter()
    completer.roster = ROSTER
    found = completer.get_completions(Document(typed), CompleteEvent())
    assert [each.text for each in found] == offered


def piece(text: str, at: int, turn: str = "t") -> TerminalDraft:
    draft = Draft(
        correlation_id="c",
        turn_id=turn,
        address=Address("terminal", "terminal"),
        agent="anna",
        text=text,
        begins_at=at,
    )
    return TerminalDraft(draft, "anna")


@given(st.lists(st.text(max_size=4), max_size=6))
def test_a_draft_grows_by_its_pieces(pieces: list[str]) -> None:
    view, at = DraftView("anna", "t"), 0
    for each in pieces:
        view.take(piece(each, at))
        view.take(piece(each, at))  # as after a restart
        at += len(each)
    assert view.text == "".join(pieces)


def test_a_gap_in_a_draft_is_seen_and_a_new_turn_begins_anew() -> None:
    view = DraftView("anna", "t")
    view.take(piece("upon", 5))
    assert view.text == " … upon"
    view.take(piece("Once", 0, turn="u"))
    assert view.text == "Once"


def test_a_device_is_no_file() -> None:
    with pytest.raises(OSError, match="is no plain file"):
        files_in("look at @/dev/null")


def test_files_are_read_by_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MOST_FILE", 5)
    path = tmp_path / "plan.txt"
    path.write_bytes(b"12345")
    (file,) = files_in(f"look at @{path} and mail me@/nowhere")
    assert (file.name, file.content) == ("plan.txt", b"12345")
    with pytest.raises(OSError, match="No such file"):
        files_in(f"@{path}.gone")
    path.write_bytes(b"123456")
    with pytest.raises(OSError, match="in one message"):
        files_in(f"@{path}")


def test_a_question_for_leave_is_known_by_its_id() -> None:
    text = "🔐 anna wants to run `x` — /approve 3F or /deny 3F, 120 s"
    found = QUESTION.search(text)
    assert found is not None
    assert found[1] == "3F"
    assert QUESTION.search("/approve 3F or /deny 4G") is None


def test_what_was_typed_is_kept_for_its_owner_and_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "LONGEST_HISTORY", 200)
    path = tmp_path / "history"
    for number in range(20):
        history = open_history(path)
        history.store_string(f"line {number}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.stat().st_size < 300
    kept = [*open_history(path).load_history_strings()]
    assert kept[0] == "line 19"
    (tmp_path / "link").symlink_to(path)
    open_history(tmp_path / "link").store_string("elsewhere")
    assert "elsewhere" not in path.read_text()
