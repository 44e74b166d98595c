"""Signs by the names that Slack knows them by; pure.

Source: the standard emoji set's short names (iamcal/emoji-data), which Slack uses.
"""

from __future__ import annotations

import re

NAMES: dict[str, str] = {
    "👀": "eyes",
    "✅": "white_check_mark",
    "☑": "ballot_box_with_check",
    "✔": "heavy_check_mark",
    "⚠": "warning",
    "❌": "x",
    "⛔": "no_entry",
    "🚫": "no_entry_sign",
    "⏳": "hourglass_flowing_sand",
    "⌛": "hourglass",
    "⏰": "alarm_clock",
    "🕐": "clock1",
    "🤔": "thinking_face",
    "💭": "thought_balloon",
    "💬": "speech_balloon",
    "✍": "writing_hand",
    "📝": "memo",
    "👍": "+1",
    "👎": "-1",
    "👌": "ok_hand",
    "👋": "wave",
    "🙏": "pray",
    "👏": "clap",
    "💯": "100",
    "🔥": "fire",
    "🎉": "tada",
    "🚀": "rocket",
    "❤": "heart",
    "😀": "grinning",
    "🙂": "slightly_smiling_face",
    "😕": "confused",
    "😢": "cry",
    "🤖": "robot_face",
    "🔄": "arrows_counterclockwise",
    "🔧": "wrench",
    "⚙": "gear",
    "🆗": "ok",
    "❓": "question",
    "❗": "exclamation",
    "🛑": "octagonal_sign",
    "🟢": "large_green_circle",
    "🔴": "red_circle",
    "⭐": "star",
    "✨": "sparkles",
}

NAMED = re.compile(r":([a-z0-9_'+-]{1,100}):")


def name_of(sign: str) -> str:
    """Give the name of a sign; empty if it is not known here.

    One that is written by its name, as `:party_parrot:`, is taken by its word.
    """
    named = NAMED.fullmatch(sign)
    if named is not None:
        return named[1]
    return NAMES.get(sign.replace("\ufe0f", ""), "")
