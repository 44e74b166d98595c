"""What models write, in the markup of each platform; pure.

Models write Markdown. `parse.py` reads it into a tree (`dialect.py`), and each platform
has a dialect that says how to write the tree there; other packages call `render.py`.
Nothing here talks to anybody.

Three things hold for every dialect, and are tested with any text at all: what a model
wrote is never markup that it did not write as Markdown, no raw HTML and no mention
included; what is rendered is valid by itself; and it is never longer than the platform
takes if the part was cut by `actors/journal/splitting.py`.
"""

__all__ = ["dialect", "render"]
