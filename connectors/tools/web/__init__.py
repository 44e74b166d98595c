"""The tools `web_search` and `http_fetch`.

Made by the registry of tools. Begin with `http_fetch`; `readable` makes text of a page,
`engine` is what a search engine has to do, `searxng` and `brave` are two of them.
"""
