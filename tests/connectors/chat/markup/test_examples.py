"""What each platform is sent for the Markdown that models write."""

from __future__ import annotations

import pytest

from connectors.chat.markup.render import rendered, rendered_html
from tests.support.chat.markup_texts import DIALECTS

JOINT = "\u200b"
FAR = "x" * 70
A = '<a href="https://x">a</a>'


def shown(text: str, *names: str) -> list[str]:
    """Give a text in several dialects."""
    return [rendered(text, DIALECTS[name]) for name in names]


@pytest.mark.parametrize(
    ("text", "discord", "slack", "telegram", "whatsapp"),
    [
        ("**a**", "**a**", "*a*", "<b>a</b>", "*a*"),
        ("*a*", "*a*", "_a_", "<i>a</i>", "_a_"),
        ("~~a~~", "~~a~~", "~a~", "<s>a</s>", "~a~"),
        ("`a<b`", "`a<b`", "`a&lt;b`", "<code>a&lt;b</code>", "`a<b`"),
        ("***a***", "***a***", "_*a*_", "<i><b>a</b></i>", "_*a*_"),
        ("*a **b***", "*a **b***", "_a *b*_", "<i>a <b>b</b></i>", "_a *b*_"),
        (
            "x**a**y",
            "x**a**y",
            f"x{JOINT}*a*{JOINT}y",
            "x<b>a</b>y",
            f"x{JOINT}*a*{JOINT}y",
        ),
        ("**a\nb**", "**a**\n**b**", "*a*\n*b*", "<b>a</b>\n<b>b</b>", "*a*\n*b*"),
        (
            "**a `b` c**",
            *["**a `b` c**", "*a `b` c*"],
            *["<b>a </b><code>b</code><b> c</b>", "*a `b` c*"],
        ),
        (
            "a_b 2 * 3 & <",
            *["a\\_b 2 \\* 3 & \\<", "a_b 2 * 3 &amp; &lt;"],
            *["a_b 2 * 3 &amp; &lt;", "a_b 2 * 3 & <"],
        ),
        ("\\*a\\*", "\\*a\\*", "∗a∗", "*a*", "∗a∗"),
        ("\\# a", "\\# a", "# a", "# a", "# a"),
        ("1\\. a", "1\\. a", "1. a", "1. a", "1. a"),
        ("\\> a", "\\> a", f"{JOINT}&gt; a", "&gt; a", f"{JOINT}> a"),
        ("## a", "## a", "*a*", "<b>a</b>", "*a*"),
        ("#### a", "**a**", "*a*", "<b>a</b>", "*a*"),
        ("> a\nb", "> a\n> b", "> a\n> b", "<blockquote>a\nb</blockquote>", "> a\n> b"),
        ("***", "———", "———", "———", "———"),
        ("```", "```", "```", "```", "```"),
    ],
)
def test_words_are_marked_up(
    text: str, discord: str, slack: str, telegram: str, whatsapp: str
) -> None:
    said = shown(text, "discord", "slack", "telegram", "whatsapp")
    assert said == [discord, slack, telegram, whatsapp]


@pytest.mark.parametrize(
    ("text", "discord", "slack", "telegram", "whatsapp"),
    [
        ("[a](https://x)", "[a](https://x)", "<https://x|a>", A, "a (https://x)"),
        ("![a](https://x)", "[a](https://x)", "<https://x|a>", A, "a (https://x)"),
        ("https://x/_a_b.", *["<https://x/_a_b>."] * 2, *["https://x/_a_b."] * 2),
        (
            "(<https://x>)",
            "(<https://x>)",
            "(<https://x>)",
            "(https://x)",
            "(https://x)",
        ),
        ("[a](/b)", "a (/b)", "a (/b)", "a (/b)", "a (/b)"),
        ("[a](tg://user?id=1)", *["a (tg://user?id=1)"] * 4),
        ("[a](javascript:b)", "\\[a\\](javascript:b)", *["[a](javascript:b)"] * 3),
        (
            "**[a](https://x)**",
            *["**[a](https://x)**", "*<https://x|a>*"],
            *[f"<b>{A}</b>", "*a (https://x)*"],
        ),
    ],
)
def test_links_lead_where_they_say(
    text: str, discord: str, slack: str, telegram: str, whatsapp: str
) -> None:
    said = shown(text, "discord", "slack", "telegram", "whatsapp")
    assert said == [discord, slack, telegram, whatsapp]


@pytest.mark.parametrize("name", DIALECTS)
def test_an_address_is_not_disguised_as_another(name: str) -> None:
    said = rendered("[https://bank.org](https://evil.org)", DIALECTS[name])
    assert "https://bank.org (" in said
    assert "evil.org" in said


def test_code_keeps_its_language_where_there_is_one() -> None:
    said = shown("```py\na = '<'\n```", "discord", "slack", "telegram", "whatsapp")
    assert said == [
        "```py\na = '<'\n```",
        "```\na = '&lt;'\n```",
        "<pre><code class=\"language-py\">a = '&lt;'</code></pre>",
        "```\na = '<'\n```",
    ]


@pytest.mark.parametrize("name", ["discord", "slack", "whatsapp"])
def test_code_does_not_end_itself(name: str) -> None:
    said = rendered("~~~\n```\n@x\n```\n~~~", DIALECTS[name])
    assert said.count("```") == 2
    assert said.startswith("```\n")
    assert said.endswith("\n```")


def test_lists_keep_their_numbers_boxes_and_depth() -> None:
    text = "3. a\n4. b\n   - c\n     d\n- [x] e\n- [ ] f\n- - g"
    whole = "3. a\n4. b\n  • c\n    d\n☑ e\n☐ f\n• • g"
    assert shown(text, "telegram", "slack") == [whole, whole]
    assert rendered_html("3. a\n- [x] e") == (
        '<ol start="3">\n<li>a</li>\n</ol>\n<ul>\n<li>☑ e</li>\n</ul>'
    )


def test_a_table_is_drawn_if_it_is_narrow() -> None:
    drawn = "a    |  b\n-----+---\nlong |  1\né    | 🦊"
    text = "|a|b|\n|--|-:|\n|long|**1**|\n|é|🦊|"
    assert shown(text, "discord", "telegram") == [
        f"```\n{drawn}\n```",
        f"<pre>{drawn}</pre>",
    ]
    assert "<table>" in rendered_html(text)


def test_a_wide_table_is_said_row_by_row() -> None:
    said = rendered(f"|a|b|\n|--|--|\n|c|{FAR}|\n|d||", DIALECTS["telegram"])
    assert said == f"<b>a | b</b>\nc | {FAR}\nd"


def test_rows_that_are_too_long_are_shown_as_they_are() -> None:
    text = "|a|\n|--|\n|b|c|"
    assert rendered(text, DIALECTS["telegram"]) == text
    assert rendered_html(text) == "<p>|a|<br />\n|--|<br />\n|b|c|</p>"


def test_lines_stand_as_far_apart_as_they_were_written() -> None:
    text = "# a\nb\n\nc\n- d\n\n- e"
    assert rendered(text, DIALECTS["telegram"]) == "<b>a</b>\nb\n\nc\n• d\n\n• e"


def test_raw_html_is_text() -> None:
    said = shown("<b>a</b> <a href='x'>", "telegram", "slack")
    assert said == ["&lt;b&gt;a&lt;/b&gt; &lt;a href='x'&gt;"] * 2


def test_what_has_no_room_is_said_as_it_is() -> None:
    text = "**a** <b>"
    assert rendered(text, DIALECTS["discord"], 10) == "**a** \\<b>"
    assert rendered(text, DIALECTS["discord"], 9) == text
