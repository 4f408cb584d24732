"""Job files, URIs, --set: what they mean, and what is refused where."""

from __future__ import annotations

import pickle
import re
import traceback
from pathlib import Path

import pytest
from memory_tables import registered_store

from headgate.config.conflicts import check_job
from headgate.config.job import Job
from headgate.config.reader import job_of, load_job
from headgate.config.uris import Given, masked, parse_sink, parse_source
from headgate.core.errors import UsageError
from headgate.core.scalars import duration, share, size
from headgate.kafka.client_options import READING, producer_settings
from headgate.selection.columns import Columns
from headgate.selection.filters import Filter
from headgate.selection.globs import overlap
from headgate.selection.routes import Route
from headgate.selection.statements import Ddl
from headgate.selection.tables import Tables

CANARY = "c4n4ry+S3cret"

ISSUE = """\
source:   {uri: "kafka://broker:9092/cdc-*", format: auto, starting: earliest}
tables:   {include: ["shop.*"], exclude: ["shop.tmp_*"]}
filter:   [{table: shop.orders, ops: [insert, update], where: "amount > 100", columns: {exclude: [note]}}]
ddl:      {include: [create, alter], exclude: [drop]}
route:    [{table: "shop.(.*)", to: "lake.$1", topic: "cdc.{database}.{table}"}]
sink:     [{uri: "kafka://broker:9092/?protocol=debezium", partition: index-value}, {uri: "file:///data/out?protocol=maxwell"}]
pipeline: {name: orders, checkpoint: ./state, trigger: 5s, heartbeat: 10s, dead_letters: ./dead, max_invalid: 1%}
"""  # noqa: E501

SMALL = """\
source: {uri: "kafka://h/in"}
sink:
  uri: kafka://h/out?protocol=maxwell
"""


def write(folder: Path, text: str | bytes, name: str = "job.yaml") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refused(folder: Path, text: str | bytes, overrides=None, environment=None) -> str:
    """The text of the refusal, from its line on."""
    path = write(folder, text)
    with pytest.raises(UsageError) as caught:
        load_job(path, overrides, {} if environment is None else environment)
    said = str(caught.value)
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert CANARY not in shown
    return said.removeprefix(f"{path}:")


def loaded(folder: Path, text: str, overrides=None, environment=None):
    return load_job(write(folder, text), overrides, {} if environment is None else environment)


# The issue's examples


def test_the_issues_job(tmp_path):
    job = loaded(tmp_path, ISSUE)

    assert ("orders", str(tmp_path / "state"), str(tmp_path / "dead")) == (
        job.name,
        job.checkpoint,
        job.dead_letters,
    )
    assert (5.0, 10.0, 0.01) == (job.trigger, job.heartbeat, job.max_invalid)
    source = job.source
    assert ("kafka", "auto", ("cdc-*",), "earliest") == (
        source.connector.name,
        source.format,
        source.connector.topics,
        source.connector.starting,
    )
    assert {"kafka.bootstrap.servers": "broker:9092"} == source.connector.client
    assert Tables(("shop.*",), ("shop.tmp_*",)) == job.tables
    columns = Columns(exclude=("note",))
    expected = Filter("shop.orders", ("insert", "update"), "amount > 100", columns)
    assert (expected,) == job.filters
    assert Ddl(("create", "alter"), ("drop",)) == job.ddl
    assert (Route("shop.(.*)", "lake.$1", "cdc.{database}.{table}"),) == job.routes
    kafka, files = job.sinks
    assert ("kafka", "debezium", {}) == (kafka.connector.name, kafka.format, kafka.options)
    assert ("file", "maxwell", "/data/out", False) == (
        files.connector.name,
        files.format,
        files.connector.path,
        files.connector.lines,
    )


def test_the_issues_command_line():
    job = job_of(
        "kafka://127.0.0.1:9092/orders?protocol=canal-json",
        ["kafka://127.0.0.1:9092/orders-dbz?protocol=debezium"],
    )

    assert (("orders",), "canal-json") == (job.source.connector.topics, job.source.format)
    assert ("debezium", {"topic": "orders-dbz"}) == (job.sinks[0].format, job.sinks[0].options)
    assert "orders-to-orders-dbz" == job.name
    state = Path(job.checkpoint)
    assert Path.cwd() / "state" == state.parent
    assert re.fullmatch(r"orders-to-orders-dbz-[0-9a-f]{8}", state.name)
    assert f"{job.checkpoint}/dead-letters" == job.dead_letters


def test_a_command_lines_job_has_the_same_checkpoint_each_time_and_with_another_password():
    def job(password: str, topic: str = "out", host: str = "h", **settings: str) -> Job:
        source = f"kafka://me:{password}@{host}/in"
        return job_of(source, [f"kafka://h/{topic}?protocol=maxwell"], settings)

    assert job("a").checkpoint == job("b").checkpoint
    assert job("a").name != job("a", "other").name
    assert job("a").name == job("a", host="other").name
    assert job("a").checkpoint != job("a", host="other").checkpoint
    named = job("a", **{"pipeline.name": "mine"})
    assert ("mine", str(Path.cwd() / "state" / "mine")) == (named.name, named.checkpoint)


def test_ticdcs_own_uri_can_be_written_to_and_read_from():
    uri = (
        "kafka://127.0.0.1:9092,127.0.0.1:9093/topic-name?protocol=canal-json&kafka-version=2.4.0"
        "&partition-num=6&max-message-bytes=67108864&replication-factor=1"
        "&enable-tidb-extension=true&compression=lz4&required-acks=-1&max-batch-size=16"
    )

    sink = parse_sink(uri)
    assert "canal-json:ticdc" == sink.format
    expected = {"enable_tidb_extension": True, "partition_num": 6, "topic": "topic-name"}
    assert expected == sink.options
    assert {
        "kafka.bootstrap.servers": "127.0.0.1:9092,127.0.0.1:9093",
        "kafka.acks": "all",
        "kafka.compression.type": "lz4",
        "kafka.max.request.size": "67108864",
    } == sink.connector.client
    source = parse_source(uri)
    assert ("canal-json", {"max_message_bytes": 67108864}) == (source.format, source.options)
    assert {"kafka.bootstrap.servers": "127.0.0.1:9092,127.0.0.1:9093"} == source.connector.client


# Defaults and forms


def test_defaults(tmp_path):
    job = load_job(write(tmp_path, SMALL, "my job.v2.yaml"), {}, {})

    assert ("my-job.v2", 0.0, None, None, 86_400.0, False) == (
        job.name,
        job.trigger,
        job.heartbeat,
        job.max_invalid,
        job.remember,
        job.redact,
    )
    assert str(tmp_path / "state" / "my-job.v2") == job.checkpoint
    assert f"{job.checkpoint}/dead-letters" == job.dead_letters
    assert (Tables(), (), Ddl(), ()) == (job.tables, job.filters, job.ddl, job.routes)


def test_every_key_of_pipeline(tmp_path):
    write(tmp_path, "CREATE TABLE shop.t (id INT PRIMARY KEY)", "shop.sql")
    job = loaded(
        tmp_path,
        SMALL
        + """\
pipeline:
  name: n
  checkpoint: hdfs://name/state
  trigger: 1m30s
  heartbeat: 500ms
  dead-letters: file:///dead
  max_invalid: 0.5
  max_messages: 500000
  remember: 2h
  redact: true
  schema: shop.sql
  metrics: 9108
  spark: {spark.sql.shuffle.partitions: 010, spark.x: no}
""",
    )

    assert ("n", "hdfs://name/state", "/dead") == (job.name, job.checkpoint, job.dead_letters)
    assert (90.0, 0.5, 0.5, 500_000, 7200.0, True) == (
        job.trigger,
        job.heartbeat,
        job.max_invalid,
        job.max_messages,
        job.remember,
        job.redact,
    )
    assert "CREATE TABLE shop.t (id INT PRIMARY KEY)" == job.schema
    assert "127.0.0.1:9108" == job.metrics
    assert {"spark.sql.shuffle.partitions": "010", "spark.x": "no"} == job.settings


def test_scalars_are_the_text_that_was_written(tmp_path):
    job = loaded(
        tmp_path,
        """\
source: {uri: in}
tables: {include: [no.010, 1e3.*, 12:30:45.on]}
sink: [{uri: out, protocol: maxwell, as: lines}]
pipeline: {name: 0x1F}
""",
    )

    assert ("no.010", "1e3.*", "12:30:45.on") == job.tables.include
    assert "0x1F" == job.name
    assert job.sinks[0].connector.lines


def test_a_uri_alone_and_a_single_value_for_a_list(tmp_path):
    job = loaded(
        tmp_path,
        'source: in\nsink: "console:?protocol=maxwell"\ntables: {include: "a.*, b.*"}\n'
        "filter: {table: a.t, ops: insert}\nddl: {include: create-index}\n",
    )

    assert (str(tmp_path / "in"), "console") == (
        job.source.connector.path,
        job.sinks[0].connector.name,
    )
    assert ("a.*", "b.*") == job.tables.include
    assert (Filter("a.t", ("insert",)),) == job.filters
    assert Ddl(("create_index",)) == job.ddl


def test_flink_cdcs_words(tmp_path):
    job = loaded(
        tmp_path,
        SMALL
        + r"""
transform:
  - source-table: mydb.app_\.*
    projection: id, order_id
    filter: id > 10
    description: some
  - {source-table: mydb.web, projection: \*}
route:
  - source-table: mydb.order_\.*
    sink-table: ods.orders
    description: sync
  - {source-table: mydb.\.*, sink-table: ods.ods_<>, replace-symbol: <>}
""",
    )

    assert (
        Filter("mydb.app_*", None, "id > 10", Columns(("id", "order_id"))),
        Filter("mydb.web"),
    ) == job.filters
    assert (
        Route("mydb\\.order_.*", "ods.orders"),
        Route("mydb\\.(.*)", "ods.ods_$1"),
    ) == job.routes


def test_parameters_may_stand_beside_the_uri(tmp_path):
    job = loaded(
        tmp_path,
        """\
source: {uri: "kafka://h", topics: [a, b-*], max_message_bytes: 1MB, kafka.group.id: g}
sink:
  - uri: kafka://h/out
    protocol: open-protocol
    partition: index-value
    partition_num: 6
    compression: zstd
    large-message-handle-compression: lz4
""",
    )

    assert ("a", "b-*") == job.source.connector.topics
    assert {"max_message_bytes": 1_048_576} == job.source.options
    assert "g" == job.source.connector.client["kafka.group.id"]
    expected = {
        "partition": "index-value",
        "partition_num": 6,
        "compression": "lz4",
        "topic": "out",
    }
    assert expected == job.sinks[0].options
    assert "zstd" == job.sinks[0].connector.client["kafka.compression.type"]


# --set


def test_overrides(tmp_path):
    job = loaded(
        tmp_path,
        ISSUE,
        {
            "pipeline.trigger": "1s",
            "pipeline.dead-letters": "d2",
            "pipeline.spark.spark.sql.session.timeZone": "UTC",
            "source.starting": "latest",
            "source.kafka.group.id": "g",
            "sink.0.uri": "kafka://other/x?protocol=canal-json:ticdc",
            "sink.1.protocol": "canal-json",
            "sink.2.uri": "console:?protocol=maxwell",
            "tables.include": "a.*,b.*",
            "filter.0.columns.exclude": "x",
            "route.0.to": "pond.$1",
        },
    )

    assert (1.0, str(tmp_path / "d2")) == (job.trigger, job.dead_letters)
    assert {"spark.sql.session.timeZone": "UTC"} == job.settings
    assert ("latest", "g") == (
        job.source.connector.starting,
        job.source.connector.client["kafka.group.id"],
    )
    assert ["canal-json:ticdc", "canal-json", "maxwell"] == [sink.format for sink in job.sinks]
    assert {"partition": "index-value", "topic": "x"} == job.sinks[0].options
    assert ("a.*", "b.*") == job.tables.include
    assert ("x",) == job.filters[0].columns.exclude
    assert "pond.$1" == job.routes[0].to


def test_overrides_of_a_sink_that_is_no_list(tmp_path):
    job = loaded(tmp_path, SMALL, {"sink.partition-num": "3", "source.format": "maxwell"})
    assert (3, "maxwell") == (job.sinks[0].options["partition_num"], job.source.format)

    job = loaded(tmp_path, SMALL, {"sink.1.uri": "console:?protocol=maxwell"})
    assert ["kafka", "console"] == [sink.connector.name for sink in job.sinks]

    job = loaded(tmp_path, "source: in\nsink: 'out?protocol=maxwell'", {"sink.as": "lines"})
    assert job.sinks[0].connector.lines


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("pipline.trigger", "1s", "unknown section 'pipline'; did you mean 'pipeline'?"),
        ("pipeline.triger", "1s", "unknown key of pipeline 'triger'; did you mean 'trigger'?"),
        ("pipeline.trigger", "5", "trigger: invalid duration '5'; use 500ms"),
        ("pipeline", "x", "the key does not name a value"),
        ("sink.7.uri", "x", "there are 2, numbered from 0"),
        ("sink.uri", "x", "there are several; give a number, as in sink.0.uri"),
        ("sink.0.partitoin", "table", "unknown parameter of a kafka sink 'partitoin'"),
        ("tables.include.x", "a.*", "the key leads into a value that is not a mapping"),
    ],
)
def test_a_wrong_override_is_refused(tmp_path, key, value, said):
    text = refused(tmp_path, ISSUE, {key: value})

    assert text.startswith(f"--set {key}: ")
    assert said in text


# Refusals, with their line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1: the file is empty"),
        ("# nothing\n", "1: the file is empty"),
        ("just text", "1: the job must be a mapping"),
        ("sink: out", "1: the job has no source"),
        ("source: in", "1: the job has no sink"),
        ("source: in\nsink: []", "2: the job has no sink"),
        ("source: in\nsink:\n", "2: sink is empty"),
        ("source: in\nsinks: x", "2: unknown section 'sinks'; did you mean 'sink'?"),
        ("source: {url: x}\nsink: x", "1: the source has no uri"),
        ("source: {uri: [a]}\nsink: x", "1: uri must be a single value"),
        ("source: {uri: }\nsink: x", "1: uri has no value"),
        ("source: in\nsink: out", "2: a sink needs a format: add protocol="),
        ("source: in\nsink: 'out?protocol=maxwel'", "did you mean 'maxwell'?"),
        ("source: in\nsink: 'out?protocol=auto'", "2: a format to write must be named"),
        ("source: in\nsink: 'out?protocol=avro'", "2: unknown format 'avro'"),
        ("source: in\nsink:\n - uri: out\n   protocol: maxwell\n   as: csv", "5: as: unknown form"),
        ("source: in\nsink: 'out?protocol=open-protocol&as=lines'", "2: open-protocol is binary"),
        ("source: in\nsink: 'console:?protocol=open-protocol'", "2: open-protocol is binary"),
        ("source: 'kafak://h/t'\nsink: x", "1: unknown scheme of a source 'kafak'; did you mean"),
        ("source: 'console:'\nsink: x", "1: unknown scheme of a source"),
        ("source: in\nsink: 'stdin:'", "2: unknown scheme of a sink"),
    ],
)
def test_what_is_wrong_with_sources_and_sinks(tmp_path, text, said):
    assert said in refused(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "tables: {includes: [a.b]}",
            "4: unknown key of tables 'includes'; did you mean 'include'?",
        ),
        ("tables:\n  include:\n    - shop", "6: include: 'shop' is not database.table; did"),
        ("tables: {include: ['!a.b']}", "'!a.b' starts with '!'; list 'a.b' under exclude"),
        ("tables: {include: ['a.b|c.d']}", "invalid table pattern 'a.b|c.d'"),
        ("tables: {include: ['`a`.b']}", "without quotes"),
        ("tables: {include: ['a..*']}", "invalid table pattern 'a..*'; write it as 'shop.*'"),
        ("tables: {include: []}", "4: include is empty"),
        ("tables:", "4: tables is empty"),
        ("tables: [a.b]", "4: tables must be a mapping"),
        ("filter: [{ops: [insert]}]", "4: the filter has no table"),
        ("filter:\n- table: a.b\n  ops: [insrt]", "6: ops: unknown operation 'insrt'; did you"),
        ("filter: [{table: a.b, ops: []}]", "4: ops is empty"),
        ("filter: [{table: a.b, where: '  '}]", "4: where: is empty"),
        ("filter: [{table: a.b, where: null}]", "4: where has no value"),
        ("filter: [{table: a.b, column: {}}]", "did you mean 'columns'?"),
        ("filter: [{table: a.b, columns: {include: []}}]", "no column would be left"),
        ("filter: [x]\ntransform: [y]", "5: filter and transform are aliases"),
        ("transform: [{source-table: 'a.b[0-9]'}]", "4: source-table: 'a.b[0-9]' is more than"),
        (
            "transform: [{source-table: a.b, projection: 'id+1'}]",
            "Headgate does not compute columns",
        ),
        ("ddl: {include: [creat]}", "4: include: unknown DDL operation 'creat'; did you mean"),
        ("ddl: {include: [drop], exclude: [drop]}", "4: drop is both included and excluded"),
        ("route: [{to: a.b}]", "4: the route has no table"),
        ("route: [{table: a.b}]", "4: the route has no target"),
        ("route: [{table: 'shop.*', to: a.b}]", "no dot separates database and table in 'shop.*'"),
        ("route: [{table: 'a.(b', to: a.b}]", "4: invalid regular expression 'a.(b'"),
        ("route: [{table: 'a.(.*)', to: 'b.$2'}]", "refers to group $2, but the table pattern"),
        ("route: [{table: 'a.b', to: 'b.$1'}]", "has none; put parentheses"),
        ("route: [{table: 'a.b', to: b}]", "4: invalid target 'b'"),
        ("route: [{table: 'a.b', to: b.c.d.e}]", "4: invalid target 'b.c.d.e'"),
        ("route: [{table: 'a.b', topic: 'a b'}]", "4: topic: invalid topic name 'a b'"),
        ("route: [{table: 'a.b', topic: '{tabel}'}]", "4: topic: option topic cannot be"),
        ("route: [{table: 'a.b', source-table: a.b, to: a.c}]", "are aliases; set only one"),
        ("pipeline: {name: a/b}", "4: name: invalid job name 'a/b'"),
        ("pipeline: {trigger: 5}", "4: trigger: invalid duration '5'"),
        ("pipeline: {heartbeat: 0s}", "4: heartbeat: must be longer than 0s"),
        ("pipeline: {max_invalid: 1}", "4: max_invalid: '1' may be meant in percent"),
        ("pipeline: {max_invalid: 101%}", "4: max_invalid: '101%' is more than 100%"),
        ("pipeline: {max_messages: 0}", "4: max_messages: 0 is out of range"),
        ("pipeline: {max_messages: 1e3}", "4: max_messages: '1e3' is not a whole number"),
        ("pipeline: {redact: yes}", "4: redact: 'yes' is neither true nor false"),
        ("pipeline: {metrics: a b}", "4: metrics: invalid address 'a b'"),
        ("pipeline: {metrics: 'h:99999'}", "4: metrics: invalid address 'h:99999'"),
        ("pipeline: {schema: missing.sql}", "cannot be read: No such file"),
        ("pipeline: {spark: {sql.x: 1}}", "4: 'sql.x' is not a Spark setting; write spark.sql.x"),
        ("pipeline: {checkpoint: }", "4: checkpoint has no value"),
        ("pipeline: {checkpoint: ''}", "4: checkpoint: is empty"),
        ("pipeline: {dead_letters: a, dead-letters: b}", "'dead-letters' is given twice"),
    ],
)
def test_what_is_wrong_elsewhere(tmp_path, text, said):
    assert said in refused(tmp_path, SMALL + text)


def test_a_parameter_beside_the_uri_is_refused_in_its_own_line(tmp_path):
    text = "source: in\nsink:\n  - uri: kafka://h/t?protocol=canal-json:ticdc\n    partition: {}\n"

    assert refused(tmp_path, text.format("tabel")).startswith("4: unknown partition rule of ticdc")
    both = text.replace("protocol=", "partition=ts&protocol=").format("ts")
    assert refused(tmp_path, both).startswith("4: partition is given twice")


def test_null_is_a_value_of_the_options_that_have_it(tmp_path):
    text = "source: in\nsink:\n  - uri: 'memory:'\n    {}: null\n"

    with registered_store():
        for option in ("zero_dates", "on-misfit"):
            path = tmp_path / "job.yaml"
            path.write_text(text.format(option))
            [sink] = load_job(path, {}).table_sinks
            assert "null" == getattr(sink.connector.options, option.replace("-", "_"))
        for option in ("store", "tinyint1"):
            assert refused(tmp_path, text.format(option)).startswith(f"4: {option} has no value")


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        load_job(tmp_path / "none.yaml", {})
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        load_job(tmp_path, {})


# Hostile YAML


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &x 1\nb: *x", "1: anchors and aliases are not supported"),
        ("source: *x", "1: anchors and aliases are not supported"),
        ("source: !!python/object/apply:os.system [id]", "1: tags (!…) are not supported"),
        ("source: !!str in", "1: tags (!…) are not supported"),
        ("source: in\nsource: in", "2: 'source' is given twice, first in line 1"),
        ("sink: {a: 1, a: 2}", "1: 'a' is given twice"),
        ("<<: {source: in}\nsink: out", "1: unknown section '<<'"),
        ("? [a]\n: b", "1: a key must be text"),
        ("source: in\n---\nsink: out", "2: a second document"),
        ("source: [", "invalid YAML"),
        ("source: in\n\tsink: x", "2: invalid YAML"),
        ("source: 'in", "invalid YAML"),
        ("source: in\nsink: a\x07", "2: a control character"),
        (b"source: in\nsink: \xff", "2: the file is not UTF-8"),
        ("[" * 100_000, "1: nested more than 20 deep"),
        ("- " * 100_000, "1: nested more than 20 deep"),
        ("source: [" + "a," * 30_000 + "]", "1: more than 20000 values"),
        ("#" * 1_048_577, " the file is larger than 1048576 bytes"),
    ],
)
def test_hostile_yaml(tmp_path, text, said):
    assert said in refused(tmp_path, text)


def test_a_byte_order_mark_and_windows_lines_are_fine(tmp_path):
    path = write(tmp_path, b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())

    assert ("in",) == load_job(path, {}, {}).source.connector.topics


# The environment and secrets


def test_values_from_the_environment(tmp_path):
    job = loaded(
        tmp_path,
        """\
source: {uri: "kafka://${USER}:${PW}@${HOSTS}/${TOPIC}"}
sink: {uri: "${SINK}", sasl-user: u, sasl-password: "${PW}"}
pipeline: {name: "${NAME}-1", checkpoint: "${NAME}/$${x}"}
""",
        environment={
            "USER": "me",
            "PW": 'p&a=b@/?#%41 "\\',
            "HOSTS": "h1,h2:9093",
            "TOPIC": "a,b",
            "SINK": "kafka://h/o%75t?protocol=maxwell",
            "NAME": "job",
        },
    )

    login = 'username="me" password="p&a=b@/?#%41 \\"\\\\";'
    assert job.source.connector.client["kafka.sasl.jaas.config"].endswith(login)
    assert ("h1:9092,h2:9093", ("a", "b")) == (
        job.source.connector.client["kafka.bootstrap.servers"],
        job.source.connector.topics,
    )
    assert {"topic": "out"} == job.sinks[0].options
    assert ("job-1", str(tmp_path / "job" / "${x}")) == (job.name, job.checkpoint)
    assert "${SINK}" == job.sinks[0].name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pipeline: {name: '${NONE}'}", "4: the environment variable NONE is not set"),
        ("pipeline: {name: '${1}'}", "4: ${ has no name after it"),
        ("pipeline: {name: '${A:-b}'}", "4: ${ has no name after it"),
        ("pipeline: {name: '/${A}'}", "4: name: invalid job name '/***'"),
        ("pipeline: {trigger: '${A}'}", "4: trigger: invalid duration '***'"),
        ("pipeline: {metrics: '${A}'}", "4: metrics: invalid address '***'"),
        ("tables: {include: '${A}'}", "4: include: invalid table pattern '***'"),
        ("pipeline: {schema: '${A}'}", "*** cannot be read"),
        ("ddl: {include: ['${A}']}", "unknown DDL operation '***'"),
        ("route: [{table: '${A}.(', to: a.b}]", "invalid regular expression '***.('"),
    ],
)
def test_the_environments_values_are_not_shown(tmp_path, text, said):
    assert said in refused(tmp_path, SMALL + text, environment={"A": CANARY})


@pytest.mark.parametrize(
    "uri",
    [
        "kafka://h/out?protocol=${A}",
        "kafka://h/out?protocol=maxwell&timezone=${A}",
        "kafka://h/out?protocol=maxwell&partition-num=${A}",
        "kafka://h/out?protocol=maxwell&max-message-bytes=${A}",
        "kafka://h/out?protocol=maxwell&sasl-mechanism=${A}&sasl-user=u&sasl-password=p",
        "kafka://h/out?protocol=maxwell&ca=${A}",
        "kafka://h/out?protocol=maxwell&dial-timeout=${A}",
        "kafka://h/out?protocol=maxwell&required-acks=${A}",
        "kafka://h/out?protocol=maxwell&compression=${A}",
        "kafka://h/out?protocol=maxwell&enable-tls=${A}",
        "kafka://h/out?protocol=maxwell&replication-factor=${A}",
        "kafka://h:${A}/out?protocol=maxwell",
        "kafka://h/${A}?protocol=maxwell",
        "file://${A}/out?protocol=maxwell",
        "${A}",
        "${B}",
        "${C}",
        f"kafka://u:{CANARY}@h:x/out?protocol=maxwell",
        f"kafka://u:{CANARY}/a@h/out?protocol=maxwell",
        f"kafka://u:a/{CANARY}@h/out?protocol=maxwell",
        f"kafka://u:a?{CANARY}@h/out?protocol=maxwell",
        f"kafka://u:a#{CANARY}@h/out?protocol=maxwell",
        f"kafka://u:%zz{CANARY}@h/out?protocol=maxwell",
        f"kafka://h/out?protocol=maxwell&sasl-password={CANARY}",
        f"kafka://h/out?protocol=maxwell&sasl-pasword={CANARY}",
        f"kafka://h/out?protocol=maxwell&sasl-password={CANARY}&sasl-password={CANARY}",
        f"kafka://h/out?protocol=maxwel&sasl-user=u&sasl-password={CANARY}",
        f"kafka://h/out?protocol=maxwell&sasl-user=a&sasl-password={CANARY}%0a",
        f"kafka://h/out?protocol=maxwell&sasl-user=u&sasl-password={CANARY}&ca=none.pem",
        f"kafka://h/out?protocol=maxwell&kafka.bootstrap.servers={CANARY}",
        f"u:{CANARY}@h:9092/out",
    ],
)
def test_a_secret_of_a_uri_is_in_no_refusal(tmp_path, uri):
    environment = {
        "A": CANARY,
        "B": f"kafka://u:{CANARY}@h:9092/out?protocl=maxwell&timezone={CANARY}",
        "C": f"kafka://u:p@h:9092/out?protocol=maxwell&timezone={CANARY}",
    }

    said = refused(tmp_path, f'source: in\nsink: "{uri}"', environment=environment)
    assert said.startswith("2: ")
    with pytest.raises(UsageError) as caught:
        job_of("in", [uri], {}, environment)
    assert CANARY not in str(caught.value)
    assert str(caught.value).startswith("--to: ")
    assert CANARY not in masked(uri)


def test_a_jobs_repr_and_its_sinks_names_have_no_secrets(tmp_path):
    plain = CANARY.replace("+", "%2B")
    job = loaded(
        tmp_path,
        f"""\
source: {{uri: "kafka://me:{plain}@h/in?kafka.ssl.key.password={plain}"}}
sink:
  - {{uri: "kafka://h/out?protocol=maxwell", sasl-user: u, sasl-password: "${{A}}"}}
  - {{uri: "kafka://h/${{B}}?protocol=maxwell&kafka-client-id=${{A}}&sasl-user=a&sasl-password=b"}}
pipeline: {{spark: {{spark.x: "${{A}}"}}}}
""",
        environment={"A": CANARY, "B": CANARY.replace("+", "_")},
    )

    assert CANARY in job.source.connector.client["kafka.sasl.jaas.config"]
    assert CANARY == job.sinks[1].connector.client["kafka.client.id"]
    assert "c4n4ry" not in repr(job) + job.source.name + job.sinks[0].name + job.sinks[1].name
    expected = "kafka://h/${B}?protocol=maxwell&kafka-client-id=***&sasl-user=***&sasl-password=***"
    assert expected == job.sinks[1].name
    assert job == pickle.loads(pickle.dumps(job))


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("kafka://h1:9092;h2/t?protocol=maxwell", "kafka://h1:9092;h2/t?protocol=maxwell"),
        ("kafka://u:p;w@h1;h2/t?protocol=maxwell", "kafka://***@h1;h2/t?protocol=maxwell"),
        ("kafka://h1:9092,h2/t?protocol=maxwell", "kafka://h1:9092,h2/t?protocol=maxwell"),
        ("kafka://a:b@h/t", "kafka://***@h/t"),
        ("kafka://a:b/c@h/t", "kafka://***@h/t"),
        ("kafka://a:b?c@h/t?protocol=maxwell", "kafka://***@h/t?protocol=maxwell"),
        ("kafka://h/t?kafka-client-id=a@b", "kafka://h/t?kafka-client-id=***"),
        ("kafka://h/t?key=k&cert=c&ca=a", "kafka://h/t?key=***&cert=***&ca=***"),
        ("kafka://h/t?sasl_password=x", "kafka://h/t?sasl_password=***"),
        ("kafka://h/t?sasl-password%3dx", "kafka://h/t?***"),
        ("kafka://h/t?token", "kafka://h/t?token=***"),
        ("a:b@h/t", "***@h/t"),
        ("file:///x?protocol=maxwell&as=lines", "file:///x?protocol=maxwell&as=lines"),
        ("-", "-"),
        ("in\nput", "in?put"),
        ("", ""),
    ],
)
def test_masked(uri, expected):
    assert expected == masked(uri)


# URIs


@pytest.mark.parametrize(
    ("uri", "kind", "path"),
    [
        ("/data/in", "file", "/data/in"),
        ("in", "file", "/base/in"),
        ("./a/../in", "file", "/base/in"),
        ("file:in", "file", "/base/in"),
        ("file:/data/in", "file", "/data/in"),
        ("file:///data/in", "file", "/data/in"),
        ("file://localhost/data/in", "file", "/data/in"),
        ("file:///a%20b%23c", "file", "/a b#c"),
        ("/a%20b#c", "file", "/a%20b#c"),
        ("-", "stdin", None),
        ("stdin:", "stdin", None),
        ("STDIN://", "stdin", None),
    ],
)
def test_paths(uri, kind, path):
    source = parse_source(uri, base="/base")

    assert (kind, path) == (source.connector.name, getattr(source.connector, "path", None))


def test_formats_and_options_of_sources():
    assert "auto" == parse_source("in").format
    assert "maxwell:oms" == parse_source("in?protocol=maxwell:oms").format
    assert "maxwell" == parse_source("-?format=maxwell").format
    source = parse_source(
        "in?protocol=canal-json&strict=true&timezone=Asia/Shanghai&compression=lz4"
    )
    assert {"strict": True, "timezone": "Asia/Shanghai", "compression": "lz4"} == source.options
    assert {"columns": "a INT"} == parse_source("in?protocol=auto&columns=a+INT").options
    source = parse_source("kafka://h/t?large-message-handle-compression=snappy&compression=gzip")
    assert {"compression": "snappy"} == source.options


def test_topics_and_brokers():
    source = parse_source("kafka://H1,[::1]:9093/a,b-*,c?")
    assert ("a", "b-*", "c") == source.connector.topics  # the ? starts the parameters
    assert "h1:9092,[::1]:9093" == source.connector.client["kafka.bootstrap.servers"]
    assert ("a", "c?") == parse_source("kafka://h?topics=a,c%3F").connector.topics
    assert ("c?",) == parse_source("kafka://h/c%3f").connector.topics


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("latest", "latest"),
        ("latest-offset", "latest"),
        ("earliest-offset", "earliest"),
        ("2024-05-01T08:00:00Z", "2024-05-01T08:00:00Z"),
        ('{"t":{"0":5}}', '{"t":{"0":5}}'),
    ],
)
def test_starting(text, expected):
    assert expected == parse_source("kafka://h/t", Given({"starting": text})).connector.starting


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("kafka://h", "names no topic"),
        ("kafka:h/t", "must start with kafka://"),
        ("kafka:///t", "broker '' is not HOST:PORT"),
        ("kafka://h:0/t", "broker 'h:0' is not HOST:PORT"),
        ("kafka://h:70000/t", "is not HOST:PORT"),
        ("kafka://h:a/t", "broker 'h:a' is not HOST:PORT"),
        ("kafka://a:b:c@h:x/t", "broker 1 is not HOST:PORT"),
        ("kafka://@h/t", "USER:PASSWORD must come before @"),
        ("kafka://u@h/t", "USER:PASSWORD must come before @"),
        ("kafka://h/a/b", "a topic's name has no /"),
        ("kafka://h/a%20b", "invalid topic name 'a b'"),
        ("kafka://h/..", "invalid topic name '..'"),
        ("kafka://h/" + "a" * 250, "invalid topic name"),
        ("kafka://h/a,a", "a topic is named twice"),
        ("kafka://h/a?topics=b", "in one place"),
        ("kafka://h/t?starting=erliest", "did you mean 'earliest'?"),
        ("kafka://h/t?starting={", "no JSON of offsets"),
        ('kafka://h/t?starting={"t":5}', "no JSON of offsets"),
        ("in?starting=latest", "this source starts at its beginning"),
        ("kafka://h/t?protcol=maxwell", "did you mean 'protocol'?"),
        ("kafka://h/t?protocol", "'protocol' has no value"),
        ("kafka://h/t?protocol=maxwell&format=maxwell", "'protocol' is given twice"),
        ("kafka://h/t?protocol=canal-json:ticd", "did you mean 'ticdc'?"),
        ("kafka://h/t?a=%zz", "write % as %25"),
        ("kafka://h/t?a=%ff", "not UTF-8"),
        ("kafka://h/t?a=%00", "control character"),
        ("kafka://h/t\n", None),
        ("kafka://h/\tt", "control character"),
        ("kafka://h/t#x", "write it as %23"),
        ("file://in", "file:DIR for ./DIR"),
        ("file:", "has no directory"),
        ("stdin:x", "only parameters may follow stdin:"),
        ("in?partition-num=3", "unknown parameter of a file source"),
        ("in?schema=x", "under pipeline: schema"),
        ("kafka://h/t?sasl-gssapi-user=x", "kafka.sasl.jaas.config"),
        ("kafka://h/t?sasl-mechanism=gssapi", "kafka.sasl.jaas.config"),
        ("kafka://h/t?sasl-mechanism=plan&sasl-user=a&sasl-password=b", "did you mean 'plain'?"),
        ("kafka://h/t?sasl-user=a", "both sasl-user and sasl-password"),
        ("kafka://u:p@h/t?sasl-user=a&sasl-password=b", "give it once"),
        ("kafka://h/t?kafka.auto.offset.reset=latest", "say starting"),
        ("kafka://h/t?kafka-client-id=a&kafka.client.id=b", "are aliases"),
        ("kafka://h/t?dial-timeout=10", "dial-timeout: invalid duration '10'"),
        ("kafka://h/t?read-timeout=1h", "read-timeout is out of range"),
        ("kafka://h/t?protocol=maxwell&large-message-handle-compression=lz4", "unknown parameter"),
        ("broker:9092/t", "brokers are written kafka://HOST:PORT/TOPIC"),
    ],
)
def test_wrong_sources(uri, said):
    if said is None:
        assert ("t",) == parse_source(uri).connector.topics
        return
    with pytest.raises(UsageError) as caught:
        parse_source(uri)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("kafka://h/a,b?protocol=maxwell", "invalid topic name 'a,b'"),
        ("kafka://h/a*?protocol=maxwell", "invalid topic name 'a*'"),
        ("kafka://h/{tabel}?protocol=maxwell", "{database}, {schema} and {table} only"),
        ("kafka://h/a?protocol=maxwell&topic=b", "in one place"),
        ("kafka://h/a?protocol=debezium&partition=table", "leave partition out"),
        ("kafka://h/a?protocol=maxwell&partition=tabel", "unknown partition rule of maxwell"),
        ("out?protocol=maxwell&partition=table", "needs partition-num"),
        ("kafka://h/a?protocol=maxwell&partition-num=0", "partition-num cannot be 0"),
        ("kafka://h/a?protocol=maxwell&partition-num=x", "it takes a whole number"),
        ("kafka://h/a?protocol=maxwell&compression=lzo", "unknown compression 'lzo'"),
        ("kafka://h/a?protocol=maxwell&required-acks=2", "it is -1, 0 or 1"),
        ("kafka://h/a?protocol=maxwell&replication-factor=0", "out of range"),
        ("kafka://h/a?protocol=maxwell&auto-create-topic=on", "neither true nor false"),
        ("kafka://h/a?protocol=open-protocol&max-batch-size=0", "at least 1"),
        ("kafka://h/a?protocol=maxwell&output-ddl=maybe", "it takes true or false"),
        ("kafka://h/a?protocol=maxwell&as=lines", "unknown parameter of a kafka sink"),
        ("kafka://h/a?protocol=maxwell&cert=x", "cert and key belong together"),
        ("kafka://h/a?protocol=maxwell&enable-tls=false&ca=x", "enable-tls is false"),
        ("kafka://h/a?protocol=maxwell&ca=/none", "the file of ca cannot be read"),
        ("kafka://h/a?protocol=maxwell&starting=latest", "unknown parameter of a kafka sink"),
    ],
)
def test_wrong_sinks(uri, said):
    with pytest.raises(UsageError) as caught:
        parse_sink(uri)
    assert said in str(caught.value)


def test_settings_of_a_kafka_sink():
    sink = parse_sink(
        "kafka://h/{database}.{table}?protocol=maxwell&auto-create-topic=false&replication-factor=3"
        "&required-acks=1&compression=zstd&max-message-bytes=2MB&kafka-client-id=me"
        "&dial-timeout=1m&read-timeout=10s&write-timeout=10s&kafka.linger.ms=5&enable-tls=true"
        "&insecure-skip-verify=true&sasl-user=a%20b&sasl-password=c%2Bd+e&sasl-mechanism=SCRAM-SHA-512"
    )

    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    assert {
        "kafka.bootstrap.servers": "h:9092",
        "kafka.client.id": "me",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": f'{module} required username="a b" password="c+d e";',
        "kafka.ssl.endpoint.identification.algorithm": "",
        "kafka.socket.connection.setup.timeout.ms": "60000",
        "kafka.socket.connection.setup.timeout.max.ms": "60000",
        "kafka.request.timeout.ms": "10000",
        "kafka.linger.ms": "5",
        "kafka.acks": "1",
        "kafka.compression.type": "zstd",
        "kafka.max.request.size": "2097152",
    } == sink.connector.client
    assert (False, 3) == (sink.connector.create_topics, sink.connector.replication)
    assert {"topic": "{database}.{table}"} == sink.options


def test_what_a_uri_says_of_a_client_goes_before_what_a_job_sets_itself():
    own = parse_source("kafka://h/t").connector.spark_options()
    told = parse_source("kafka://h/t?kafka.max.poll.records=7").connector.spark_options()
    assert READING == {name: own[name] for name in READING}
    assert READING | {"kafka.max.poll.records": "7"} == {name: told[name] for name in READING}

    told = producer_settings(
        parse_sink("kafka://h/t?protocol=maxwell&kafka.linger.ms=3").connector.client
    )
    assert ("3", "524288") == (told["kafka.linger.ms"], told["kafka.batch.size"])
    told = producer_settings(
        parse_sink("kafka://h/t?protocol=maxwell&kafka.batch.size=9").connector.client
    )
    assert ("20", "9") == (told["kafka.linger.ms"], told["kafka.batch.size"])


def test_a_producers_own_settings_go_with_the_largest_message_and_the_timeout():
    small = producer_settings(
        parse_sink("kafka://h/t?protocol=maxwell&max-message-bytes=1000").connector.client
    )
    large = producer_settings(
        parse_sink("kafka://h/t?protocol=maxwell&max-message-bytes=64MB").connector.client
    )

    assert "1000" == small["kafka.batch.size"]
    assert int(large["kafka.buffer.memory"]) >= 2 * int(large["kafka.max.request.size"])
    assert "kafka.linger.ms" not in producer_settings({"kafka.delivery.timeout.ms": "30000"})


@pytest.mark.parametrize(
    ("partitions", "batch"), [(0, 512), (64, 512), (65, 256), (600, 32), (10**6, 16)]
)
def test_batches_of_all_partitions_fit_into_a_producers_memory(partitions, batch):
    assert str(batch << 10) == producer_settings({}, partitions)["kafka.batch.size"]
    told = {"kafka.buffer.memory": str(128 << 20)}
    assert int(producer_settings(told, partitions)["kafka.batch.size"]) >= batch << 10


def test_tls_files_are_read(tmp_path):
    write(tmp_path, "-----BEGIN CERTIFICATE-----\nca\n", "ca.pem")
    write(tmp_path, "-----BEGIN CERTIFICATE-----\nme\n", "me.pem")
    write(tmp_path, f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n", "me.key")
    write(tmp_path, f"-----BEGIN RSA PRIVATE KEY-----\n{CANARY}\n", "old.key")
    write(tmp_path, b"\xff\x00", "binary")
    uri = "kafka://h/t?ca=ca.pem&cert=me.pem&key="

    source = parse_source(uri + "me.key", base=str(tmp_path))
    assert {
        "kafka.bootstrap.servers": "h:9092",
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": "-----BEGIN CERTIFICATE-----\nca\n",
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": "-----BEGIN CERTIFICATE-----\nme\n",
        "kafka.ssl.keystore.key": f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n",
    } == source.connector.client
    assert CANARY not in repr(source)
    with pytest.raises(UsageError, match="not in PKCS#8") as caught:
        parse_source(uri + "old.key", base=str(tmp_path))
    assert CANARY not in str(caught.value)
    with pytest.raises(UsageError, match="the file of key is not PEM"):
        parse_source(uri + "binary", base=str(tmp_path))


def test_partitions():
    assert {"topic": "t"} == parse_sink("kafka://h/t?protocol=debezium&partition=rowid").options
    sink = parse_sink("kafka://h/t?protocol=maxwell&partition=primary_key")
    assert {"partition": "primary_key", "topic": "t"} == sink.options
    sink = parse_sink("kafka://h/t?protocol=debezium&partition-num=6")
    assert {"partition_num": 6, "topic": "t"} == sink.options


# What cannot go together


@pytest.mark.parametrize(
    ("source", "sinks", "more", "said"),
    [
        ("kafka://h/a", ["kafka://h/a?protocol=maxwell"], "", "2: the topic 'a' is, or can become"),
        ("kafka://h/*", ["kafka://h/a?protocol=maxwell"], "", "read its own output"),
        (
            "kafka://x,h/a-*",
            ["kafka://H:9092/a-{table}?protocol=maxwell"],
            "",
            "read its own output",
        ),
        ("kafka://h/a", ["kafka://h?protocol=maxwell"], "", "2: the sink has no topic"),
        (
            "kafka://h/lake.*",
            ["kafka://h/out?protocol=maxwell"],
            "route: [{table: 'a.(.*)', to: 'lake.$1', topic: '{database}.{table}'}]",
            "4: the topic 'lake.$1' is, or can become",
        ),
        (
            "in",
            ["in?protocol=maxwell"],
            "",
            "2: the sink writes into the directory that the source reads",
        ),
        (
            "in",
            ["file:in/out?protocol=maxwell"],
            "",
            "2: the sink writes into the directory that the source reads",
        ),
        (
            "in/x",
            ["in?protocol=maxwell"],
            "",
            "2: the sink writes into the directory that the source reads",
        ),
        (
            "in",
            ["out?protocol=maxwell", "./out?protocol=debezium"],
            "",
            "3: two sinks write into the same",
        ),
        ("in", ["out?protocol=maxwell"], "pipeline: {dead_letters: in/dead}", "4: dead_letters"),
        (
            "in",
            ["out?protocol=maxwell"],
            "pipeline: {checkpoint: in}",
            "4: checkpoint overlaps the",
        ),
        (
            "in",
            ["out?protocol=maxwell"],
            "pipeline: {checkpoint: out}",
            "4: checkpoint overlaps the directory of a sink",
        ),
        (
            "in",
            ["state/o?protocol=maxwell"],
            "pipeline: {checkpoint: state}",
            "4: checkpoint overlaps",
        ),
        (
            "in",
            ["out?protocol=maxwell"],
            "pipeline: {checkpoint: s, dead_letters: ./s}",
            "4: checkpoint and dead_letters are the same directory",
        ),
    ],
)
def test_conflicts(tmp_path, source, sinks, more, said):
    listed = ",\n  ".join(f"{{uri: '{sink}'}}" for sink in sinks)
    text = f"source: {source}\nsink: [{listed}]\n" + "\n" * (2 - len(sinks)) + more

    assert said in refused(tmp_path, text)


def test_a_link_to_the_sources_directory_is_seen_through(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "in")

    text = "source: in\nsink: 'link?protocol=maxwell'"
    assert "the sink writes into the directory that the source reads" in refused(tmp_path, text)


def test_what_is_apart_goes_together(tmp_path):
    job = loaded(
        tmp_path,
        """\
source: kafka://h/cdc-*
sink: ["kafka://h/cdc.x?protocol=maxwell", "kafka://other/cdc-x?protocol=maxwell", "o?protocol=maxwell", "o2?protocol=maxwell"]
route: [{table: 'a.(.*)', topic: 'cdc.{database}.$1'}]
""",  # noqa: E501
    )

    assert 4 == len(job.sinks)
    for _, check in check_job(job):
        check()


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ("*", "", True),
        ("a*", "*a", True),
        ("a*b", "a?", True),
        ("a*b", "?c", False),
        ("?", "", False),
        ("??", "a*", True),
        ("a*c*e", "abcde", True),
        ("a*c*e", "abde", False),
        ("*-x", "cdc-*", True),
        ("cdc-*", "cdc.*", False),
        ("*a*", "*b*", True),
        ("", "", True),
    ],
)
def test_overlap(one, other, expected):
    assert (expected, expected) == (overlap(one, other), overlap(other, one))


# Columns and the schema


def test_a_filters_columns_are_checked_where_the_schema_is_known(tmp_path):
    write(tmp_path, "CREATE TABLE shop.orders (Id INT PRIMARY KEY, note TEXT, amount INT)", "s.sql")
    text = "source: in\nsink: 'out?protocol=maxwell'\n"
    text += "pipeline: {{schema: s.sql}}\nfilter:\n  - table: {}\n    columns: {}\n"

    job = loaded(tmp_path, text.format("shop.orders", "{exclude: [NOTE]}"))
    assert ("NOTE",) == job.filters[0].columns.exclude
    said = refused(tmp_path, text.format("shop.orders", "{exclude: [notes]}"))
    assert said.startswith("5: unknown column of shop.orders 'notes'; did you mean 'note'?")
    said = refused(tmp_path, text.format("shop.orders", "{exclude: ['i*']}"))
    assert said.startswith("5: the filter removes 'Id', a primary key column")
    assert "removes 'Id'" in refused(tmp_path, text.format("shop.orders", "{include: [note]}"))
    loaded(tmp_path, text.format("shop.other", "{exclude: [id]}"))


def test_a_schema_that_is_not_understood_is_refused(tmp_path):
    write(tmp_path, "CREATE TABLE t (id INT", "s.sql")

    said = refused(tmp_path, SMALL + "pipeline:\n  schema: s.sql")
    assert said.startswith("5: schema: schema file, line 1:")


# Values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5s", 5),
        ("500ms", 0.5),
        ("2m", 120),
        ("1h", 3600),
        ("1d", 86400),
        ("1h30m", 5400),
        ("0s", 0),
    ],
)
def test_duration(text, expected):
    assert expected == duration(text)


@pytest.mark.parametrize(
    "text", ["", "5", "s", "5 s", "-1s", "1e3s", "5sec", "٥s", "1s;", "99999999h"]
)
def test_wrong_duration(text):
    with pytest.raises(UsageError):
        duration(text)


@pytest.mark.parametrize(
    ("text", "expected"), [("1%", 0.01), ("0.01", 0.01), ("100%", 1), ("0", 0), (".5 %", 0.005)]
)
def test_share(text, expected):
    assert expected == share(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1024", 1024), ("1KB", 1024), ("1KiB", 1024), ("10MB", 10485760), ("1g", 2**30), ("5B", 5)],
)
def test_size(text, expected):
    assert expected == size(text)


@pytest.mark.parametrize("text", ["", "MB", "1.5MB", "-1", "1TB", "1iB"])
def test_wrong_size(text):
    with pytest.raises(UsageError):
        size(text)


def test_other_file_systems():
    source = parse_source("s3a://lake/in/2024?protocol=canal-json")
    assert ("file", "s3a://lake/in/2024") == (source.connector.name, source.connector.path)
    sink = parse_sink("S3A://lake/a%20b/?protocol=maxwell&as=lines")
    assert ("file", "s3a://lake/a b", True) == (
        sink.connector.name,
        sink.connector.path,
        sink.connector.lines,
    )
    assert "hdfs:///out" == parse_sink("hdfs:///out?protocol=maxwell").connector.path
    azure = parse_source("abfss://box@account.dfs.core.windows.net/in")
    assert "abfss://box@account.dfs.core.windows.net/in" == azure.connector.path


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("s3a:lake/in", "write s3a://BUCKET-OR-HOST/DIR"),
        ("s3a://", "write s3a://BUCKET-OR-HOST/DIR"),
        ("s3a://KEY:canary@lake/in", "has no user and no @"),
        ("oss://lake/in", "unknown scheme of a source 'oss'"),
        ("s3a://lake/in?secret-key=canary", "unknown parameter of a file source"),
    ],
)
def test_wrong_file_systems(uri, said):
    with pytest.raises(UsageError) as caught:
        parse_source(uri)
    assert said in str(caught.value)
    assert "canary" not in str(caught.value)


def test_paths_of_other_file_systems_must_not_meet():
    job = ["s3a://lake/a?protocol=maxwell", ["s3a://lake/b?protocol=maxwell"]]
    found = job_of(*job, {"pipeline.checkpoint": "s3a://lake/state/"})
    assert ("s3a://lake/state", "s3a://lake/state/dead-letters") == (
        found.checkpoint,
        found.dead_letters,
    )
    for checkpoint, said in (
        ("s3a://lake/b/state", "overlaps the directory of a sink"),
        ("oss://lake/state", "unknown file system 'oss'"),
    ):
        with pytest.raises(UsageError, match=said):
            job_of(*job, {"pipeline.checkpoint": checkpoint})
