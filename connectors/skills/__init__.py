"""Skills: folders of instructions that agents read when they need them (SKILL.md)."""
