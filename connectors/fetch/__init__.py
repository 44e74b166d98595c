"""The one guarded way out to addresses that come from people or models.

Nothing is imported here: `addresses.py` is read with the settings, while the HTTP
client behind `fetcher.py` is only loaded where something is really fetched.
"""

__all__ = ["addresses", "messages"]
