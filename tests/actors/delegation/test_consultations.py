"""Proves that consultations are bounded in number, length and age."""

from __future__ import annotations

from hypothesis import given, strategies as st

from actors.delegation.consultations import (
    ConsultationBook,
    ConsultationLimits,
    Consulted,
)

TERMS = ConsultationLimits(max_sessions=2, max_exchanges=3, max_age=60.0)


def event(number: int, session: str = "s", state: str = "replied") -> Consulted:
    return Consulted(
        inbound_id=f"q{number}",
        session=session,
        source="anna",
        asked=f"asked {number}",
        said=f"said {number}",
        state=state,
    )


def test_what_was_said_is_shown_to_who_is_asked_again() -> None:
    book = ConsultationBook(TERMS)
    book.take(event(1), 0.0)
    known = book.find("s", 1.0)
    assert known is not None
    assert [(x.role, x.text, x.name) for x in known.lines("ben")] == [
        ("user", "asked 1", "anna"),
        ("assistant", "said 1", "ben"),
    ]


def test_an_answer_is_known_by_its_question() -> None:
    book = ConsultationBook(TERMS)
    book.take(event(1), 0.0)
    book.take(event(2, state="dead"), 0.0)
    found = book.answer("q1")
    assert found is not None
    assert found.said == "said 1"
    assert book.answer("q2") is None


def test_after_a_while_nobody_goes_on_with_it() -> None:
    book = ConsultationBook(TERMS)
    book.take(event(1), 0.0)
    assert book.find("s", 60.0) is not None
    assert book.find("s", 60.1) is None
    assert book.find("other", 0.0) is None


def test_it_is_full_after_so_many_questions() -> None:
    book = ConsultationBook(TERMS)
    for number in range(3):
        known = book.find("s", 0.0)
        assert known is None or not book.is_full(known)
        book.take(event(number), 0.0)
    known = book.find("s", 0.0)
    assert known is not None
    assert book.is_full(known)


def test_the_one_longest_ago_gives_way() -> None:
    book = ConsultationBook(TERMS)
    for number, session in enumerate(("a", "b", "a", "c")):
        book.take(event(number, session), float(number))
    assert list(book.consultations) == ["a", "c"]


def test_a_copy_changes_by_itself() -> None:
    book = ConsultationBook(TERMS)
    book.take(event(1), 0.0)
    other = book.copy()
    other.take(event(2, "b"), 0.0)
    assert list(book.consultations) == ["s"]


@given(steps=st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=40))
def test_it_never_holds_more_than_it_may(steps: list[tuple[str, bool]]) -> None:
    book = ConsultationBook(TERMS)
    for number, (session, is_answered) in enumerate(steps):
        state = "replied" if is_answered else "cancelled"
        book.take(event(number, session, state), float(number))
        assert len(book.consultations) <= TERMS.max_sessions
        for known in book.consultations.values():
            assert 1 <= len(known.events) <= TERMS.max_exchanges
