"""Proves that every actor stands in the tree once, in pages that are bounded."""

from __future__ import annotations

from hypothesis import given, strategies as st

from actors import names
from connectors.admin.tree import MOST, MOST_CHILDREN, Forest, Node, read_tree
from runtime.actor.statistics import ActorStatistics


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
