"""Reading and checking the settings file.

`load.load_app` reads a file, and `editing` changes one; `checks/` holds a module of
rules for each subject, and each chat platform brings its own
(`connectors/chat/platforms.py`). `schema.py` writes the JSON schema for editors. The
shapes of settings are in `connectors/config/`.
"""

__all__ = [
    "checks",
    "editing",
    "load",
    "schema",
]
