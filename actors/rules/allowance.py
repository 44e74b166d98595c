"""How many tokens one run may take, and when it has to come to its end; pure.

The next round reads what the last one read and wrote, and what the tools gave back
since. So the run is told to end, in words and without tools, while what is left is
enough for that, and not for more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.messages import Line, Usage

# Source: what every estimate in this field divides by.
CHARACTERS_PER_TOKEN = 4


class Allowance:
    """What one run may take.

    Args:
        most: tokens, read and written; 0: no limit.
    """

    __slots__ = ("_expected", "most", "taken")

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken = 0
        """Tokens until now."""

        self._expected = 0

    def take(self, usage: Usage) -> None:
        """Count a round."""
        tokens = usage.input_tokens + usage.output_tokens
        self.taken += tokens
        self._expected = tokens

    def expect(self, results: Iterable[Line]) -> None:
        """Learn what the next round will read beside what the last one did."""
        characters = sum(len(each.text) for each in results)
        self._expected += characters // CHARACTERS_PER_TOKEN

    @property
    def is_over(self) -> bool:
        """Whether there is not enough left for one more round."""
        return bool(self.most) and self.taken + self._expected > self.most

    @property
    def is_last(self) -> bool:
        """Whether the next round must be the last."""
        return bool(self.most) and self.taken + 2 * self._expected > self.most

    @property
    def used_up(self) -> str:
        """Say to people that there is not enough left."""
        return (
            f"I have used up what one run may take: {self.taken} of {self.most} tokens,"
            " too little for another round. Have me do less at a time, or raise"
            " autonomous.run_tokens."
        )
