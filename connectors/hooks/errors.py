"""What may go wrong with a hook.

ChatError
└── HookError        it gave no verdict
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.errors import ChatError

if TYPE_CHECKING:
    from actors.hooks.chain import Trouble


class HookError(ChatError):
    """A hook gave no verdict.

    Args:
        text: what happened, for the operator.
        trouble: the same in one word, for counting.
    """

    def __init__(self, text: str, trouble: Trouble) -> None:
        super().__init__(text)
        self.trouble: Trouble = trouble
