"""What models write, in the markup of each platform; pure.

Models write Markdown. `grammar.py` reads it, `reading.py` makes a tree of it
(`tree.py`), and each platform has a dialect that says how the tree is written there;
`rendering.py` is the door. Nothing here talks to anybody.

Three things hold for every dialect, and are tested with any text at all: what a model
wrote is never markup that it did not write as Markdown, no raw HTML and no mention
included; what is rendered is valid by itself; and it is never longer than the platform
takes if the part was cut by `actors/rules/measures.py`.
"""
