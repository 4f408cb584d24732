"""An S3 server on loopback for tests: moto's."""

from __future__ import annotations

import logging
from typing import Any

from pyarrow import fs

from headgate.spark.filesystem import file_system

BUCKET = "lake"
KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI-not-to-be-shown"


class S3Server:
    """The server with one bucket; `settings` are those of Spark."""

    def __init__(self) -> None:
        from moto.server import ThreadedMotoServer  # takes seconds, and few tests need it

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self.server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)

    def __enter__(self) -> S3Server:
        self.server.start()
        host, port = self.server.get_host_and_port()
        options = {
            "endpoint": f"http://{host}:{port}",
            "endpoint.region": "us-east-1",
            "access.key": KEY,
            "secret.key": SECRET,
            "path.style.access": "true",
        }
        self.settings = {f"spark.hadoop.fs.s3a.{name}": value for name, value in options.items()}
        self.fs: Any = fs.S3FileSystem(
            access_key=KEY,
            secret_key=SECRET,
            region="us-east-1",
            endpoint_override=options["endpoint"],
            allow_bucket_creation=True,
        )
        self.fs.create_dir(BUCKET)
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()

    def files(self, uri: str) -> list[str]:
        """The paths of all objects below a URI."""
        system, path = file_system(uri, self.settings)
        chosen = fs.FileSelector(path, recursive=True, allow_not_found=True)
        return sorted(i.path[len(path) + 1 :] for i in system.get_file_info(chosen) if i.is_file)
