"""Where delta-rs finds a table: its URI and the options of its object store, from Spark's settings.

Credentials that are not set are found as the cloud's own tools find them (environment variables,
profiles of the machine).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from headgate.spark.filesystem import PREFIX, is_remote, local, scheme_of

S3_OPTIONS = {
    "access.key": "aws_access_key_id",
    "secret.key": "aws_secret_access_key",
    "session.token": "aws_session_token",
    "endpoint.region": "aws_region",
}
AZURE_OPTIONS = {
    "account.key": "azure_storage_account_key",
    "sas.fixed.token": "azure_storage_sas_key",
    "account.oauth2.client.id": "azure_client_id",
    "account.oauth2.client.secret": "azure_client_secret",
}


def delta_uri(uri: str) -> str:
    """A path or URI as delta-rs takes it.

    >>> delta_uri("s3a://bucket/lake"), delta_uri("file:///lake")
    ('s3://bucket/lake', '/lake')
    """
    if not is_remote(uri):
        return os.path.abspath(local(uri))
    return f"s3://{uri.partition('://')[2]}" if scheme_of(uri) in ("s3", "s3a") else uri


def storage_options(uri: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The options of delta-rs for a URI, from Spark's settings.

    >>> storage_options("s3a://b/x", {"spark.hadoop.fs.s3a.endpoint": "http://h:9000"})
    {'aws_conditional_put': 'etag', 'aws_endpoint_url': 'http://h:9000', 'aws_allow_http': 'true', \
'aws_virtual_hosted_style_request': 'true'}
    """
    if not is_remote(uri):
        return {}
    scheme = scheme_of(uri)
    if scheme in ("s3", "s3a"):
        return s3_options(urlsplit(uri).netloc, settings)
    if scheme in ("abfs", "abfss"):
        return azure_options(urlsplit(uri).hostname or "", settings)
    return {}


def s3_options(bucket: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Options for a bucket, as Spark's `s3a` is set."""

    def setting(name: str) -> str | None:
        of_bucket = settings.get(f"{PREFIX}fs.s3a.bucket.{bucket}.{name}")
        return of_bucket or settings.get(f"{PREFIX}fs.s3a.{name}") or None

    options = {"aws_conditional_put": "etag"}  # a commit never replaces another
    for name, option in S3_OPTIONS.items():
        if (value := setting(name)) is not None:
            options[option] = value
    if "Anonymous" in (setting("aws.credentials.provider") or ""):
        options["aws_skip_signature"] = "true"
    if (endpoint := setting("endpoint")) is not None:
        if "://" not in endpoint:
            plain = (setting("connection.ssl.enabled") or "").lower() == "false"
            endpoint = f"{'http' if plain else 'https'}://{endpoint}"
        options["aws_endpoint_url"] = endpoint
        if endpoint.startswith("http:"):
            options["aws_allow_http"] = "true"
        by_path = (setting("path.style.access") or "").lower() == "true"
        options["aws_virtual_hosted_style_request"] = str(not by_path).lower()
    return options


def azure_options(host: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Options for a container of Azure, as Spark's `abfss` is set."""
    account = host.partition(".")[0]

    def setting(name: str) -> str | None:
        of_account = settings.get(f"{PREFIX}fs.azure.{name}.{host}")
        return of_account or settings.get(f"{PREFIX}fs.azure.{name}") or None

    options = {"azure_storage_account_name": account}
    for name, option in AZURE_OPTIONS.items():
        if (value := setting(name)) is not None:
            options[option] = value
    endpoint = setting("account.oauth2.client.endpoint")
    if endpoint is not None:  # https://login.microsoftonline.com/TENANT/oauth2/token
        options["azure_tenant_id"] = urlsplit(endpoint).path.strip("/").partition("/")[0]
    return options
