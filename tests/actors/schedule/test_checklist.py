"""Proves what of a checklist is looked after, and in which groups."""

from __future__ import annotations

from hypothesis import given, strategies as st

from actors.schedule.checklist import (
    LONGEST_ITEM,
    ChecklistGroup,
    ChecklistItem,
    grouped,
    parse,
    with_asked,
)

FILE = """\
# Heartbeat

<!-- - nobody reads this -->
- Be brief.

## Email ##
- bills that are due
  this week
* [ ] letters from the bank
- [x] the form (done)
  with a second line
---
## Garden
1. frost tonight?
-
## Empty
"""


def test_headings_name_domains_and_lines_are_items() -> None:
    assert parse(FILE) == (
        ChecklistItem("Be brief.", "Heartbeat"),
        ChecklistItem("bills that are due this week", "Email"),
        ChecklistItem("letters from the bank", "Email"),
        ChecklistItem("frost tonight?", "Garden"),
    )


def test_a_file_of_headings_and_comments_is_empty() -> None:
    assert parse("# Heartbeat\n\n<!-- nothing\n- yet") == ()
    assert parse("") == ()
    assert parse("\n- [X] all done\n***\n") == ()


def test_a_list_as_other_programs_write_it_is_empty_while_it_names_nothing() -> None:
    text = """# Heartbeat Tasks

This file is checked every 30 minutes.
Add tasks below:
  one a line.

## Active Tasks
<!-- below this line -->
{task}
## Completed
- water the plants
### In May
- sow
## Later
buy seeds
"""
    later = ChecklistItem("buy seeds", "Later")
    assert parse(text.format(task="")) == (later,)
    frost = ChecklistItem("frost?", "Active Tasks")
    assert parse(text.format(task="- frost?")) == (frost, later)
    assert parse("```markdown\n# Keep this file empty.\n```\n") == ()


def test_what_was_asked_for_joins_the_domain_that_it_names() -> None:
    items = with_asked(
        parse("## Email\n- bills"),
        ["email: spam", "the oven", "Note: salt", "car: oil", "Car:  tyres"],
    )
    assert items[1:] == (
        ChecklistItem("spam", "Email"),
        ChecklistItem("the oven"),
        ChecklistItem("Note: salt"),
        ChecklistItem("oil", "car"),
        ChecklistItem("tyres", "car"),
    )


def test_an_address_and_a_time_are_no_domain() -> None:
    asked = ["https://a.example up?", "at 09:00: tea", "at 09:00: cake"]
    assert [each.domain for each in with_asked((), asked)] == ["", "", ""]


def test_groups_keep_the_order_of_their_domains() -> None:
    groups = grouped(parse(FILE), 4)
    assert [each.domain for each in groups] == ["Heartbeat", "Email", "Garden"]
    assert groups[1].lines[1] == "- letters from the bank"


def test_the_last_group_holds_what_is_too_many() -> None:
    first, rest = grouped(parse(FILE), 2)
    assert first.domain == "Heartbeat"
    assert rest == ChecklistGroup(
        "others",
        (
            "Email:",
            "- bills that are due this week",
            "- letters from the bank",
            "Garden:",
            "- frost tonight?",
        ),
    )
    (all_,) = grouped(parse(FILE), 1)
    assert all_.domain == ""
    assert "Email:" in all_.lines


def test_a_very_long_item_is_cut() -> None:
    (item,) = parse("- " + "x" * 5000)
    assert len(item.text) == LONGEST_ITEM
    assert item.text.endswith("…")


@given(st.text(), st.lists(st.text(max_size=40)), st.integers(1, 5))
def test_no_item_is_lost_or_told_twice(text: str, asked: list[str], most: int) -> None:
    items = with_asked(parse(text), asked)
    groups = grouped(items, most)
    assert len(groups) <= most
    told = [line for group in groups for line in group.lines if line.startswith("- ")]
    assert sorted(told) == sorted(f"- {each.text}" for each in items)


@given(st.lists(st.sampled_from(["# a", "- b", "  c", "", "d", "---", "- [x] e"])))
def test_reading_is_total(lines: list[str]) -> None:
    for each in parse("\n".join(lines)):
        assert each.text
