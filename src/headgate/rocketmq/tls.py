"""TLS of RocketMQ's client, whose settings are the JVM's and name files."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headgate.rocketmq.client_options import Tls

_settings = threading.Lock()
"""One client is started at a time, as all read the same settings."""


@contextmanager
def tls_files(jpype: Any, tls: Tls | None) -> Iterator[None]:
    """Settings and files by which a client that is started meanwhile uses TLS; then they go."""
    if tls is None:
        yield
        return
    config = jpype.JClass("org.apache.rocketmq.remoting.netty.TlsSystemConfig")
    with _settings, tempfile.TemporaryDirectory(prefix="headgate-tls-") as folder:
        config.tlsTestModeEnable = False  # it trusts everybody
        config.tlsClientAuthServer = tls.verify
        config.tlsClientTrustCertPath = _file(folder, "ca", tls.ca)
        config.tlsClientCertPath = _file(folder, "cert", tls.cert)
        config.tlsClientKeyPath = _file(folder, "key", tls.key)
        yield


def _file(folder: str, name: str, text: str | None) -> str | None:
    """A file that only this user can read."""
    if text is None:
        return None
    path = os.path.join(folder, name)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    return path
