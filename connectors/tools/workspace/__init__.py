"""The tools for an agent's own folder: read, write, list and send files.

Made by the registry of tools. Begin with `files`, the tools; `workspace` keeps them in
the folder.
"""

__all__ = ["files", "workspace"]
