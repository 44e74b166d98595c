"""Rules about words: length, languages, likeness, secrets, durations; pure.

Used all over the domain and the edges. Begin with the file that has the name of what
you look for: `cleaning` takes out what does not print, `secrets` finds keys and
passwords, `translations` translates the runtime's own sentences.
"""

__all__ = [
    "cleaning",
    "codes",
    "durations",
    "globs",
    "languages",
    "limits",
    "measure",
    "secrets",
    "similarity",
    "translations",
]
