# The images of docker-compose.yml: `service` (master, loop, web, mail, git) and `worker` (kernel builds, testboxes).
# The base can be any Debian 12, or an image made from one that knows your mirrors and certificates: --build-arg BASE=...
ARG BASE=debian:bookworm-20250520-slim

FROM ${BASE} AS python
# libpython of the system, so that environments made in one stage work in another; git keeps and fetches trees.
RUN apt-get -qq update \
 && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends ca-certificates git python3 >/dev/null \
 && rm -rf /var/lib/apt/lists/* \
 && git config --system --add safe.directory '*' \
 && groupadd --gid 10001 swingbot \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/swingbot --shell /usr/sbin/nologin swingbot \
 && install -d -o 10001 -g 10001 -m 0750 /var/lib/swingbot /var/lib/swingbot/maildir /var/cache/swingbot /keys /keys/mail /keys/master /keys/builder /keys/testbox /keys/exchange
ENV PATH=/opt/swingbot/.venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 LANG=C.UTF-8 HOME=/var/lib/swingbot \
    SWINGBOT_PATHS_STATE=/var/lib/swingbot SWINGBOT_PATHS_CACHE=/var/cache/swingbot

FROM python AS venv
RUN apt-get -qq update \
 && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends python3-venv >/dev/null \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/swingbot
COPY pyproject.toml requirements.lock ./
COPY docker/locked.py docker/

# One environment for each image, from the one lock; every file is checked against its hash. It is made again only when the lock changes.
# Buildbot loads what belongs to its own local worker, so the service has the worker extra too.
FROM venv AS service-venv
RUN python3 docker/locked.py master worker >/tmp/requirements.txt \
 && python3 -m venv .venv && pip -q --no-cache-dir --disable-pip-version-check install --require-hashes -r /tmp/requirements.txt \
 && python3 -m compileall -q .venv

FROM venv AS worker-venv
RUN python3 docker/locked.py worker >/tmp/requirements.txt \
 && python3 -m venv .venv && pip -q --no-cache-dir --disable-pip-version-check install --require-hashes -r /tmp/requirements.txt \
 && python3 -m compileall -q .venv

# The wheel that everybody installs; what an image has no use for is taken out of it again.
FROM worker-venv AS wheel
COPY . /tmp/source
RUN pip -q --disable-pip-version-check wheel --no-index --no-deps --no-build-isolation --wheel-dir /dist /tmp/source

# The one testbox that needs nothing but a processor; others come as files mounted over workers/testboxes.
FROM service-venv AS service-installed
COPY --from=wheel /dist /dist
RUN pip -q --disable-pip-version-check install --no-index --no-deps /dist/*.whl \
 && resources=$(python -m swingbot_jobs.resources) && ln -s "$resources/jobs" "$resources/workers" . \
 && find "$resources/workers/testboxes" -type f ! -name vm-icount.yaml -delete \
 && rm -r "$resources/../swingbot_worker" && install -D -m 0644 -t dist /dist/*.whl

# Who works for the service has nothing of its inside: no way of thinking, no tables.
FROM worker-venv AS worker-installed
COPY --from=wheel /dist /dist
RUN pip -q --disable-pip-version-check install --no-index --no-deps /dist/*.whl \
 && resources=$(python -m swingbot_jobs.resources) && ln -s "$resources/jobs" "$resources/workers" . \
 && find "$resources/workers/testboxes" -type f ! -name vm-icount.yaml -delete \
 && rm -r "$resources/../swingbot" "$resources/../swingbot_db" "$resources/master" "$resources/db" "$resources/dashboards"

# netperf is in Debian's non-free part: fetched from this base's own mirror here, for at run time there is no way out.
FROM worker-installed AS netperf
RUN apt-get -qq update \
 && python -c 'from pathlib import Path; from swingbot_worker.rootfs.debian import fetched; fetched("netperf", Path("/tmp"))' \
 && install -D -t /benchmarks /tmp/debian/netperf/usr/bin/netperf /tmp/debian/netperf/usr/bin/netserver

FROM python AS service
COPY --from=service-installed /opt/swingbot /opt/swingbot
COPY docker /opt/swingbot/docker
USER 10001:10001
WORKDIR /var/lib/swingbot
CMD ["swingbot", "--help"]

# TLS in front of the workers' exchange (docker-compose.elsewhere.yml).
FROM python AS exchange
RUN apt-get -qq update \
 && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends nginx-light >/dev/null \
 && rm -rf /var/lib/apt/lists/*
COPY docker /opt/swingbot/docker
USER 10001:10001
CMD ["sh", "/opt/swingbot/docker/exchange"]

FROM python AS worker
# gcc to xz-utils: kernel builds.  bubblewrap: the walls around them.  qemu to stress-ng: testboxes, and what runs inside them.
RUN apt-get -qq update \
 && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends \
      make gcc libc6-dev flex bison bc libelf-dev libssl-dev cpio kmod rsync xz-utils patch ccache bubblewrap \
      qemu-system-x86 busybox rt-tests linux-perf procps dbench fio iperf3 numactl redis-tools stress-ng >/dev/null \
 && rm -rf /var/lib/apt/lists/*
COPY --from=netperf /benchmarks /opt/swingbot/benchmarks
ENV SWINGBOT_BENCHMARKS_DIR=/opt/swingbot/benchmarks
COPY --from=worker-installed /opt/swingbot /opt/swingbot
COPY docker /opt/swingbot/docker
USER 10001:10001
WORKDIR /var/lib/swingbot
CMD ["swingbot-worker", "--help"]
