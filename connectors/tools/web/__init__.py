"""The tools `web_search` and `http_fetch`.

Made by the registry of tools. Begin with `http_fetch`, which also makes text of a page;
`web_search` holds the search engines, too.
"""
