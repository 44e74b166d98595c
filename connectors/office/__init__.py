"""What the operator sees and does by hand: the same for command line and web page.

Each thing is read in one way here, and changed in one way; the commands print it, the
page shows it. It blocks: a server calls it off the kernel's thread.
"""
