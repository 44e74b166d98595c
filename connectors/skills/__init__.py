"""Skills: folders with a SKILL.md that agents read when they need it.

`source` offers them to agents as a tool, and `folder` keeps them up to date. Begin with
`folder`, then `checks` (what a skill may not be).
"""

__all__ = ["checks", "folder", "lessons", "source"]
