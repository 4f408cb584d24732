"""TLS in the URIs of connectors: its options, and the PEM files that they name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from headgate.core.connectors import Address
from headgate.core.errors import UsageError
from headgate.core.options import option
from headgate.core.scalars import truth

MAX_PEM_BYTES = 1024 * 1024


@dataclass(frozen=True)
class TlsOptions:
    """Parameters of a URI that say how TLS is used, named as TiCDC names them."""

    enable_tls: bool | None = option(
        None,
        "whether to use TLS; if it is not set: where there is a ca, cert or key",
        read=truth,
        private=True,
    )
    ca: str | None = option(
        None,
        "PEM file of the certificate authority, read at start: workers need not have it",
        private=True,
    )
    cert: str | None = option(None, "PEM file of the client's certificate", private=True)
    key: str | None = option(None, "PEM file of the client's key, in PKCS#8", private=True)


def tls_texts(options: TlsOptions, skip_verify: bool, address: Address) -> dict[str, str] | None:
    """The texts of the files that `ca`, `cert` and `key` name; None where TLS is not used.

    >>> tls_texts(TlsOptions(), False, Address("kafka"))
    >>> tls_texts(TlsOptions(enable_tls=True), False, Address("kafka"))
    {}
    """
    given = {"ca": options.ca, "cert": options.cert, "key": options.key}
    files = {word: path for word, path in given.items() if path is not None}
    enabled = bool(files) or skip_verify if options.enable_tls is None else options.enable_tls
    if not enabled:
        if files or skip_verify:
            raise UsageError(
                "enable-tls is false, but ca, cert, key or insecure-skip-verify is set"
            )
        return None
    if ("cert" in files) != ("key" in files):
        raise UsageError("cert and key belong together; give both or neither")
    texts = {word: pem_text(word, path, address.base) for word, path in files.items()}
    if "key" in texts:
        address.env.hide(texts["key"])
    return texts


def pem_text(word: str, path: str, base: str | None) -> str:
    """The text of the PEM file of an option. Workers get the text: they may not have the file."""
    file = Path(os.path.join(base or os.getcwd(), path))
    try:
        if file.stat().st_size > MAX_PEM_BYTES:
            raise UsageError(f"the file of {word} is too large to be PEM")
        text = file.read_text("ascii")
    except OSError as error:
        raise UsageError(f"the file of {word} cannot be read: {error.strerror}") from None
    except ValueError:
        text = ""
    if "-----BEGIN " not in text:
        raise UsageError(f"the file of {word} is not PEM; it starts with -----BEGIN")
    return text
