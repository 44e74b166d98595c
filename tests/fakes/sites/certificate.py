"""A certificate for `site.example`, signed by itself, and how both sides use it.

The key is no secret: nothing but these tests trusts it.
"""

from __future__ import annotations

import ssl
from pathlib import Path

KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg9JKKnEkhnmVzhTVK
exCfaPkyjSoG0yPUfat5NlUZjO2hRANCAATu+ax23RRDypzGbsXlvFGyc48q5xyb
KP8NEgympTM9M960v1D6jPJqykr8Zn+wjcFZOVln9eLrWyLl5njItcva
-----END PRIVATE KEY-----
"""

CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBezCCASCgAwIBAgIBATAKBggqhkjOPQQDAjAXMRUwEwYDVQQDDAxzaXRlLmV4
YW1wbGUwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBcxFTATBgNV
BAMMDHNpdGUuZXhhbXBsZTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABO75rHbd
FEPKnMZuxeW8UbJzjyrnHJso/w0SDKalMz0z3rS/UPqM8mrKSvxmf7CNwVk5WWf1
4utbIuXmeMi1y9qjWzBZMBcGA1UdEQQQMA6CDHNpdGUuZXhhbXBsZTAPBgNVHRMB
Af8EBTADAQH/MB0GA1UdDgQWBBQlwuICrXrH7v5wQErU9Wox79YiADAOBgNVHQ8B
Af8EBAMCAoQwCgYIKoZIzj0EAwIDSQAwRgIhAIraMO5PlvtOdO/9B5RElMQqpGv3
hNAa3GC2FSFWO+WXAiEA3edIfcORirz7xHgiWDAWGBWQGmOhO1ds980/VT/ksRE=
-----END CERTIFICATE-----
"""


def server_side(folder: Path) -> ssl.SSLContext:
    """Make a server that shows the certificate; `ssl` reads it from files only."""
    (folder / "site.pem").write_text(KEY + CERTIFICATE, encoding="ascii")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "site.pem")
    return context


def client_side() -> ssl.SSLContext:
    """Make a client that trusts the certificate, and no other."""
    return ssl.create_default_context(cadata=CERTIFICATE)
