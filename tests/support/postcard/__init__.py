"""A chat platform made only for tests: people drop postcards at an office in memory.

`tests/connectors/chat/test_new_platform.py` registers it as
docs/where-to-change-what.md says, and plays it through the whole program. A new
platform is a package like this one.
"""
