"""Proves that every actor stands in the tree once, in pages that are bounded.

Also what `callboard tree` shows of it, for one process and for each node.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from hypothesis import given, strategies as st

from actors import names
from connectors.admin.nodes import (
    ENDED,
    GONE,
    RUNS,
    STANDS_BY,
    ListedNode,
    NodeReply,
)
from connectors.admin.tree import MOST, MOST_CHILDREN, Forest, Node, read_tree
from connectors.cli import run
from connectors.commands.status import show_nodes
from runtime import __version__
from runtime.actor.statistics import ActorStatistics
from tests.fakes.sites.threaded_site import open_little_site

Shown = pytest.CaptureFixture[str]


def actor(name: str, supervisor: str = "", *, depth: int = 0) -> ActorStatistics:
    return ActorStatistics(
        name=name,
        kind="Puppet",
        supervisor=supervisor,
        state="running",
        depth=depth,
        limit=256,
        weight=0,
        handled=1,
        failed=0,
        restarts=0,
        age=1.0,
        busy_for=0.0,
        handling="",
        last_end="ValueError: the key is sk-1",
        is_idle=True,
    )


def family(sizes: list[int]) -> list[ActorStatistics]:
    """Make a root with so many children, each with so many children."""
    found = [actor(names.ROOT)]
    for number, size in enumerate(sizes):
        child = f"{names.ROOT}/{number:03}"
        found.append(actor(child, names.ROOT))
        found += [actor(f"{child}/{each:04}", child) for each in range(size)]
    return found


def everybody(nodes: tuple[Node, ...]) -> list[Node]:
    return [each for node in nodes for each in (node, *everybody(node.children))]


def hidden(nodes: tuple[Node, ...]) -> int:
    """Count who is not shown, with all below: here nobody below is hidden twice."""
    return sum(each.hidden for each in everybody(nodes))


@given(st.lists(st.integers(0, 120), max_size=12))
def test_everybody_is_shown_once_or_counted(sizes: list[int]) -> None:
    forest = read_tree(family(sizes))
    shown = everybody(forest.roots)
    assert len({each.name for each in shown}) == len(shown) <= MOST
    assert forest.actors == 1 + len(sizes) + sum(sizes)
    assert len(shown) + hidden(forest.roots) == forest.actors
    assert all(len(each.children) <= MOST_CHILDREN for each in shown)


@given(st.integers(0, 400))
def test_page_by_page_everybody_comes_once(count: int) -> None:
    actors, top, past = family([count]), f"{names.ROOT}/000", ""
    seen: list[str] = []
    while True:
        (root,) = read_tree(actors, top=top, past=past).roots
        seen += [each.name for each in root.children]
        if not (past := root.next):
            break
    assert seen == sorted(seen)
    assert len(set(seen)) == len(seen) == count


def test_no_more_are_shown_than_fit_a_page() -> None:
    forest = read_tree(family([50] * 50))
    assert len(everybody(forest.roots)) <= MOST + MOST_CHILDREN


def test_of_many_the_busiest_is_shown() -> None:
    actors = family([3 * MOST_CHILDREN])
    busy = f"{names.ROOT}/000/0149"
    actors = [actor(x.name, x.supervisor, depth=x.name == busy) for x in actors]
    ((first, *_),) = [x.children for x in read_tree(actors).roots[0].children]
    assert first.name == busy


def test_who_has_no_supervisor_stands_beside_the_root() -> None:
    actors = [actor("a"), actor(names.ROOT), actor("x/y", "x")]
    forest: Forest = read_tree(actors)
    assert [each.name for each in forest.roots] == [names.ROOT, "a", "x/y"]
    assert forest.roots[2].label == "y"


def test_secrets_in_errors_are_masked() -> None:
    def redact(text: str) -> str:
        return text.replace("sk-1", "***")

    (root,) = read_tree([actor(names.ROOT)], redact).roots
    assert root.last_end == "ValueError: the key is ***"
    assert root.refusal.startswith("the root is not killed")


def test_a_branch_that_has_ended_meanwhile_gives_the_whole_tree() -> None:
    forest = read_tree(family([2]), top=f"{names.ROOT}/gone")
    assert forest.roots[0].name == names.ROOT


SETTINGS = """
default_agent = "anna"
models.scripted = { kind = "scripted", script = "script.toml" }
agents.anna.prompt = "I am Anna."
connectors.terminal.kind = "terminal"
connectors.web = { kind = "http", port = %s }
"""


def node(name: str, *children: Node, **more: Any) -> Node:
    """Make an actor's statistics; `more` replaces some of the fields."""
    (root,) = read_tree([actor(name)]).roots
    label = name.rpartition("/")[2]
    told = {"label": label, "last_end": "", "children": children}
    return msgspec.structs.replace(root, **{**told, **more})


BUSY = node(
    "callboard/a",
    state="stopping",
    depth=2,
    restarts=1,
    handling="Say",
    busy_for=3.4,
    last_end="it \x1b broke",
    hidden=1200,
    next="callboard/a/x",
)
CALM = node("callboard/b", restarts=2, hidden=3)
FOREST = Forest((node("callboard", BUSY, CALM), node("x")), 1207)


def told_at(indent: str, at: str) -> list[str]:
    """Give the lines of that forest, as they are set in and name the node."""
    more = f"more: callboard tree {at}"
    lines = [
        "callboard  Puppet  0/256",
        "  a  Puppet  stopping  2/256  1 restart  Say for 3 s  (it ␛ broke)",
        f"    … 1,200 {more}callboard/a --past callboard/a/x",
        "  b  Puppet  0/256  2 restarts",
        f"    … 3 {more}callboard/b",
        "x  Puppet  0/256",
    ]
    return [indent + each for each in lines]


def test_a_process_is_asked_for_its_tree_and_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("script.toml").write_text('[default]\nreply = "so"\n')
    body = msgspec.json.encode(FOREST)
    with open_little_site({"GET /actors": (200, body)}) as site:
        Path("callboard.toml").write_text(SETTINGS % site.url.rpartition(":")[2])
        assert run(["tree", "--connector", "web"]) == 0
        assert capsys.readouterr().out.splitlines() == told_at("", "")
        assert run(["tree", "--connector", "web", "a", "--json"]) == 0
        shown = msgspec.json.decode(capsys.readouterr().out, type=Forest)
        assert shown == FOREST
        assert run(["tree", "--connector", "web", "--node", "n"]) == 2
        assert "give --connector or --node, not both" in capsys.readouterr().err
        site.answers["GET /actors"] = (404, b'{"error":{"message":"no such actor"}}')
        assert run(["tree", "--connector", "web", "zoe"]) == 1
        assert capsys.readouterr().err == "Error: no such actor\n"


def said(
    name: str, state: str, why: str = "", body: bytes = b"", **more: Any
) -> NodeReply:
    listed = ListedNode(name, state, 0, (), "", 1, "", __version__)
    return NodeReply(listed, why, body=body, **more)


def test_the_tree_of_each_node_is_shown_or_why_there_is_none(capsys: Shown) -> None:
    whole = said("n1", RUNS, body=msgspec.json.encode(FOREST))
    idle, ended = said("n2", STANDS_BY, "no actors run"), said("n3", ENDED, "it ended")
    assert show_nodes([whole, idle, ended], as_json=False) == 0
    lines = [f"node n1  {RUNS}  1,207 actors", *told_at("  ", "--node n1 ")]
    stands = f"node n2  {STANDS_BY}: no actors run"
    assert capsys.readouterr().out.splitlines() == [*lines, stands]
    assert show_nodes([ended], as_json=False) == 1
    assert capsys.readouterr().out == f"node n3  {ENDED}: it ended\n"
    mute = said("n4", "works on its parts", body=b"?")
    assert show_nodes([whole, mute], as_json=True) == 1
    first, second = msgspec.json.decode(capsys.readouterr().out)["nodes"]
    assert (first["node"], first["actors"], first["why"]) == ("n1", 1207, "")
    assert msgspec.convert(first["roots"], tuple[Node, ...]) == FOREST.roots
    assert (second["why"], second["roots"]) == ("its answer cannot be read", [])


def test_an_actor_that_no_node_has_is_refused_once(capsys: Shown) -> None:
    refused = [said(x, RUNS, f"no \x1b actor: {x}", is_refused=True) for x in "ab"]
    gone = said("c", GONE, "it is gone")
    with pytest.raises(click.ClickException, match=r"^no ␛ actor: a$"):
        show_nodes([*refused, gone], as_json=False)
    assert capsys.readouterr().err == "callboard: node c is gone: it is gone\n"
    with pytest.raises(click.ClickException, match=r"^node b: no ␛ actor: b$"):
        show_nodes(refused[1:], as_json=False)
    whole = said("n", RUNS, body=msgspec.json.encode(FOREST))
    assert show_nodes([*refused, whole], as_json=False) == 0
    assert capsys.readouterr().out.count("node ") == 1 + 2  # and where more is
