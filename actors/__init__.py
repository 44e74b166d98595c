"""The domain: one file per actor, and the pure rules they ask. Does no I/O."""
