"""Programs and libraries from Debian's packages, unpacked into a folder: nothing is installed."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from headgate.core.errors import UsageError

FETCHING = 300


def unpack(names: list[str], folder: Path) -> None:
    """Fetch packages, without what they depend on, and unpack them below a folder."""
    with tempfile.TemporaryDirectory() as place:
        run(["apt-get", "-o", "APT::Sandbox::User=root", "download", *names], Path(place))
        for package in sorted(Path(place).glob("*.deb")):
            run(["dpkg-deb", "-x", str(package), str(folder)], Path(place))


def run(command: list[str], folder: Path) -> None:
    try:
        subprocess.run(
            command, cwd=folder, check=True, capture_output=True, text=True, timeout=FETCHING
        )
    except subprocess.CalledProcessError as error:
        raise UsageError(f"{' '.join(command)}: {error.stderr.strip()[-300:]}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{' '.join(command)}: {error}") from None
