"""The tools for an agent's own folder: read, write, list and send files.

Made by the registry of tools. Begin with `workspace`, the tools; `paths` keeps them in
the folder, `files` bounds what is in it.
"""

__all__ = ["files", "workspace"]
