"""The one guarded way out to addresses that come from people or models.

Nothing is imported here: `addresses.py` is read with the settings, while the HTTP
client behind `fetch.py` is only loaded where something is really fetched.
"""
