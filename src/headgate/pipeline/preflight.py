"""What is wrong with a job and can be seen before Spark starts: in seconds, and in one line."""

from __future__ import annotations

from headgate.config.job import Job
from headgate.core.errors import UsageError
from headgate.core.reachability import check_writable
from headgate.spark.filesystem import is_remote, local
from headgate.spark.settings import check_master, check_settings


def check_before_start(job: Job, master: str | None, writes: bool = True) -> None:
    """Refuse a job whose settings are wrong, or whose servers and directories are not there.

    `writes` says whether the job is going to write its checkpoint and its dead letters.
    """
    check_master(master)
    check_settings(job.settings)
    for end in (job.source, *job.all_sinks):
        try:
            end.connector.reachable()
        except UsageError as error:
            raise type(error)(f"{end.name}: {error}") from None
    for what, path in (("checkpoint", job.checkpoint), ("dead letters", job.dead_letters)):
        if writes and not is_remote(path):
            try:
                check_writable(local(path))
            except UsageError as error:
                raise UsageError(f"{what}: {error}") from None
