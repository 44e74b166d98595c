"""Pure decisions: no clock, no loop, no dice, no I/O."""
