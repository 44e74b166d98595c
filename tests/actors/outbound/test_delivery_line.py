"""Proves that the deliveries of a chat that are turned away go in their order."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from actors.outbound.retry import MOST_IN_LINE, DeliveryLine
from tests.support.tiers import examples


def begin(line: DeliveryLine, *names: str) -> list[str]:
    """Hand new deliveries over; give those that may go, which are then done."""
    return _done(line, [name for name in names if line.may_go(name, is_new=True)])


def go_round(line: DeliveryLine, *names: str) -> list[str]:
    """Hand all that are left over again; give those that may go, and are then done."""
    return _done(line, [name for name in names if line.may_go(name, is_new=False)])


def _done(line: DeliveryLine, names: list[str]) -> list[str]:
    for name in names:
        line.leave(name)
    return names


def test_nobody_is_turned_away_where_nobody_waits() -> None:
    line = DeliveryLine()
    assert begin(line, "a", "b") == ["a", "b"]
    assert len(line) == 0


def test_who_comes_while_others_wait_goes_after_them() -> None:
    line = DeliveryLine()
    line.join("a")
    assert begin(line, "b", "c") == []
    assert line.deliveries == ("a", "b", "c")
    assert [go_round(line, name) for name in "abc"] == [["a"], ["b"], ["c"]]
    assert begin(line, "d") == ["d"]


def test_who_does_not_come_again_holds_up_nobody_for_long() -> None:
    line = DeliveryLine()
    line.join("gone")
    assert begin(line, "b") == []
    assert go_round(line, "b") == ["b"]
    assert begin(line, "c") == ["c"]
    assert len(line) == 0


def test_a_line_has_an_end() -> None:
    line = DeliveryLine()
    for number in range(MOST_IN_LINE + 1):
        line.join(str(number))
    assert len(line) == MOST_IN_LINE
    assert not line.may_go("one more", is_new=True)


def test_who_stands_before_others_in_the_outbox_alone_takes_nobodys_place() -> None:
    line = DeliveryLine()
    line.join("answer")  # the platform is busy
    assert begin(line, "by hand", "next") == []
    # In the outbox what was said by hand is first, and nobody handed it over then.
    assert go_round(line, "by hand") == ["by hand"]
    assert list(line.deliveries) == ["answer", "next"]
    assert line.may_go("answer", is_new=False)  # still busy
    assert go_round(line, "next") == []
    assert begin(line, "another") == []
    assert list(line.deliveries) == ["answer", "next", "another"]


class Chat:
    """What connector and courier do: hand over, say one thing at a time, turn away."""

    def __init__(self) -> None:
        self.line, self.outbox, self.said = DeliveryLine(), list[int](), list[int]()
        self.beside: set[int] = set()
        """In the outbox, and handed over by nobody yet, as what an operator says."""

        self.is_free = False
        self._mailbox, self._in_hand = list[tuple[int, bool]](), list[int]()
        self._made = 0

    def write(self) -> int:
        self._made += 1
        self.outbox.append(self._made)
        return self._made

    def hand_over(self, *deliveries: int, is_new: bool = False) -> None:
        under_way = (*(each for each, _ in self._mailbox), *self._in_hand)
        self._mailbox += [(x, is_new) for x in deliveries if x not in under_way]
        while self._mailbox and not self._in_hand:
            each, was_new = self._mailbox.pop(0)
            if not self.line.may_go(str(each), is_new=was_new):
                continue
            if each in self.outbox and not self.is_free:
                self._in_hand.append(each)
                continue
            self.line.leave(str(each))
            if each in self.outbox:
                self.outbox.remove(each)
                self.said.append(each)

    def put_back(self) -> None:
        for each in self._in_hand:
            self.line.join(str(each))
        self._in_hand.clear()
        self.hand_over()


STEPS = ["new", "beside", "drain", "put back", "drop", "free or busy"]


@settings(max_examples=examples(500))
@given(st.lists(st.sampled_from(STEPS), max_size=30))
def test_handed_over_again_in_their_order_they_go_in_their_order(
    steps: list[str],
) -> None:
    chat = Chat()
    for step in steps:
        match step:
            case "new":
                chat.hand_over(chat.write(), is_new=True)
            case "beside":
                chat.beside.add(chat.write())
            case "drain":
                chat.hand_over(*chat.outbox)
            case "put back":
                chat.put_back()
            case "drop":
                del chat.outbox[:1]
            case _:
                chat.is_free = not chat.is_free
    chat.is_free = True
    for _ in range(5):
        chat.put_back()
        chat.hand_over(*chat.outbox)
    at_once = [each for each in chat.said if each not in chat.beside]
    assert at_once == sorted(set(at_once))
    assert chat.outbox == []
