FROM python:3.11-slim

RUN apt-get update \
    && apt-get install --yes --no-install-recommends default-jre-headless procps \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 headgate

COPY pyproject.toml README.md LICENSE /src/
COPY src /src/src
RUN pip install --no-cache-dir "/src[spark,fast,metrics,mysql,rocketmq,datahub,delta]" \
    && rm -rf /src

ENV JAVA_HOME=/usr/lib/jvm/default-java
USER headgate
WORKDIR /home/headgate
RUN mkdir state
VOLUME ["/home/headgate/state"]
ENTRYPOINT ["headgate"]
