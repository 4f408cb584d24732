"""The driver's half of a pass: reports come with the job, and none may be missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from in_process import Sent, batch_of, job_of
from messages import canal
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.arrow.messages import MESSAGE_SCHEMA
from headgate.pipeline.batch_pass import LostReports, PassRunner, TaskReports
from headgate.pipeline.plan import BatchPlan


@pytest.fixture
def messages(spark: SparkSession) -> DataFrame:
    rows = batch_of([Sent(canal()), Sent(b"{")], 0).to_pylist()
    return spark.createDataFrame(rows, from_arrow_schema(MESSAGE_SCHEMA)).coalesce(1)


def test_a_pass_is_one_job_with_its_reports(
    spark: SparkSession, messages: DataFrame, tmp_path: Path
) -> None:
    job = job_of(tmp_path, "canal-json", "kafka://127.0.0.1:9/out?protocol=maxwell")
    runner = PassRunner(spark, job)
    spark.sparkContext.setJobGroup("pass", "the jobs of one pass")
    result = runner.run(messages, BatchPlan((tmp_path / "state").as_uri()))
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup("pass")
    (report,) = result.reports
    assert (1, 2, ("in", 0)) == (len(jobs), report.counts.messages, report.state.partition)
    assert [b"{"] == [bytes(row.value) for row in result.dead_letters().collect()]
    result.release()


def test_a_pass_without_all_reports_is_refused(
    spark: SparkSession, messages: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TaskReports, "addInPlace", lambda self, value1, value2: value1)
    job = job_of(tmp_path, "canal-json", "kafka://127.0.0.1:9/out?protocol=maxwell")
    with pytest.raises(LostReports, match="0 of 1 tasks"):
        PassRunner(spark, job).run(messages, BatchPlan((tmp_path / "state").as_uri()))
