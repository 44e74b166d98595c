"""Proves that a web page becomes text that reads well, whatever its author does."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, strategies as st

from connectors.tools.web.http_fetch import read_page

URL = "https://site.example/a/b"


def read(page: str) -> str:
    return read_page(page, URL).text


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("hello", "hello"),
        ("<p>one</p><p>two</p>", "one\n\ntwo"),
        ("<p>one<p>two", "one\n\ntwo"),
        ("<div>one</div><div>two</div>", "one\ntwo"),
        ("<h1>Big</h1><h3>small</h3>x", "# Big\n\n### small\n\nx"),
        ("a<br>b<hr>c", "a\nb\n\n---\n\nc"),
        ("a  \n\t b <b> c</b>d", "a b cd"),
        ("x<ul><li>one</li><li>two</li></ul>y", "x\n\n- one\n- two\n\ny"),
        ("<ul><li>one<ul><li>in</ul><li>two</ul>", "- one\n  - in\n- two"),
        ("<ol start=3><li>c<li>d</ol>", "3. c\n4. d"),
        ("<ol start=x><li>a<li>b</ol>", "1. a\n2. b"),
        ("<table><tr><th>A<th>B<tr><td>1<td>2</table>", "A | B\n1 | 2"),
        ("<pre>a\n  b &lt; c\n</pre>d", "```\na\n  b < c\n```\n\nd"),
        ("run <code>x()</code>, now", "run `x()`, now"),
        ('<a href="/c">see</a>!', "[see](https://site.example/c)!"),
        ('a <a href="c?d=e&amp;f">b</a> g', "a [b](https://site.example/a/c?d=e&f) g"),
        ('<a href="#top">up</a>', "up"),
        ('<a href="javascript:x()">no</a>', "no"),
        ('<a href="http://[">no</a>', "no"),
        ('<a href="/c"></a>x', "x"),
        ("<a href=c>1<a href=/d>2", "[1](https://site.example/a/c)2"),
        ('<img alt="a cat" src=x> sits', "[image: a cat] sits"),
        ("<img src=x>sits", "sits"),
        ("1 < 2 && 3 > 2", "1 < 2 && 3 > 2"),
        ("&#" + "1" * 5_000 + "; &amp;", "&#" + "1" * 5_000 + "; &amp;"),
        ("&euro;5 &amp;amp; &#x41;", "\u20ac5 &amp; A"),
        ("<p>x<!-- <p>no</p> -->y", "xy"),
        ("<!-->x", "x"),
        ("<!doctype html><?xml ?>x<![CDATA[no]]>y</ >z", "xyz"),
        ("<script>if (a<b) '</p>'</script>x", "x"),
        ("<style>p{}</style><template>no</template><svg>no</svg>x", "x"),
        ("<p hidden>kept</p><div hidden>no<div>no</div></div>x", "kept\n\nx"),
        ("<span style='display: none'>no</span>x", "x"),
        ("<textarea><p>no</textarea>x<select><option>no</select>", "x"),
        ("a\u200bb\u202ec\U000e0041d\x00e", "abcde"),
        ("<p a='>' b=\">\" c=>x", "x"),
        ("<p/>x<br/>y", "x\ny"),
        ("<P CLASS=a>x</P >y", "x\n\ny"),
        ("a<p", "a"),
        ("a<p b='c", "a"),
        ("a</p", "a"),
        ("a<", "a<"),
        ("a<!--", "a"),
        ("<title>no", ""),
    ],
)
def test_a_page_reads_as_it_looks(page: str, text: str) -> None:
    assert read(page) == text


def test_the_title_is_one_line() -> None:
    page = read_page("<title> a\n &amp; <b>\u202e</title><title>no</title>", URL)
    assert page.title == "a & <b>"
    assert read_page("x", URL).title == ""


LONG = "word " * 60


@pytest.mark.parametrize("main", ["main", "article"])
def test_only_the_main_part_is_given(main: str) -> None:
    page = f"<div>menu</div><{main}><nav>no</nav>{LONG}</{main}><footer>no</footer>"
    assert read(page) == LONG.strip()


def test_menus_are_left_out_without_a_main_part() -> None:
    page = f"<nav>no</nav><div role=navigation>no</div>{LONG}<footer>no</footer>"
    assert read(page) == LONG.strip()


def test_where_hardly_anything_would_be_left_all_is_given() -> None:
    page = "<main>short</main><div>words</div><nav>menu</nav>"
    assert read(page) == "short\nwords\nmenu"


ENDLESS = [
    *("<div>", "<b>", "<b><p>", "<font><p>", "<table>", "<ul><li>", "<nav>", "<main>"),
    *("<", "</", "<!--", "<![CDATA[", "</p ", "&", "&a", "&#", "<a b='", "<a b=\"'"),
    *(
        "<a href=",
        "<p a=1 ",
        "<script>",
        "</scrip ",
        "<title>",
        "<pre>x",
        "<a href=x>y",
    ),
    *("<pre> \t", "<pre> <p>", " ", "\n", "&#1", "<a href=/c> ", "<p style='display "),
    *("<code>", "<p\0", "<a b=\"c' d='e\"", "<script>x</script>", " = ", "= ", "<a =/"),
]


@pytest.mark.parametrize("piece", ENDLESS)
def test_a_hostile_page_takes_no_longer_than_another(piece: str) -> None:
    def seconds(size: int) -> float:
        # Some are hardest inside of something that is opened once.
        begin = {"=": "<p ", "": "<pre>"}.get(piece.strip(), "")
        page = begin + piece * (size // len(piece)) + "."
        began = time.thread_time()
        read(page)
        return time.thread_time() - began

    # Ten times the length: about ten times as long, where a square were a hundred. A
    # busy machine may add to one or two.
    assert any(seconds(200_000) < 0.25 + 40 * seconds(20_000) for _ in range(3))


parts = st.sampled_from(
    [
        *ENDLESS,
        "</div>",
        "</a>",
        "</ul>",
        "</pre>",
        "</main>",
        "-->",
        "'",
        '"',
        ">",
        "x",
    ]
)


@given(pieces=st.lists(parts | st.text(max_size=5), max_size=30))
def test_any_page_is_read(pieces: list[str]) -> None:
    page = read_page("".join(pieces), URL)
    assert page.text == page.text.strip()
    assert "\n\n\n" not in page.text
    assert len(page.text) < 10_000
