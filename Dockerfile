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
 && install -d -o 10001 -g 10001 -m 0750 /var/lib/swingbot /var/lib/swingbot/maildir /var/cache/swingbot /keys /keys/master /keys/builder /keys/testbox
ENV PATH=/opt/swingbot/.venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 LANG=C.UTF-8 HOME=/var/lib/swingbot \
    SWINGBOT_PATHS_STATE=/var/lib/swingbot SWINGBOT_PATHS_CACHE=/var/cache/swingbot

FROM python AS venv
RUN apt-get -qq update \
 && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends python3-venv >/dev/null \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/swingbot
COPY pyproject.toml requirements.lock README.md ./
COPY docker/locked.py docker/
# Our own packages are installed as links to places that are filled below: so an environment is made anew only when the lock changes.
RUN for package in jobs/swingbot_jobs master/swingbot db/swingbot_db workers/swingbot_worker; do mkdir -p $package && touch $package/__init__.py; done

# One environment for each image, from the one lock; every file is checked against its hash.
# Buildbot loads what belongs to its own local worker, so the service has the worker extra too.
FROM venv AS service-venv
RUN python3 docker/locked.py master worker >/tmp/requirements.txt \
 && python3 -m venv .venv && pip -q --no-cache-dir --disable-pip-version-check install --require-hashes -r /tmp/requirements.txt \
 && pip -q --no-cache-dir --disable-pip-version-check install --no-deps --no-build-isolation -e . && python3 -m compileall -q .venv

FROM venv AS worker-venv
RUN python3 docker/locked.py worker >/tmp/requirements.txt \
 && python3 -m venv .venv && pip -q --no-cache-dir --disable-pip-version-check install --require-hashes -r /tmp/requirements.txt \
 && pip -q --no-cache-dir --disable-pip-version-check install --no-deps --no-build-isolation -e . && python3 -m compileall -q .venv

# netperf is in Debian's non-free part: fetched from this base's own mirror here, for at run time there is no way out.
FROM worker-venv AS netperf
COPY jobs/swingbot_jobs jobs/swingbot_jobs
COPY workers/swingbot_worker workers/swingbot_worker
RUN apt-get -qq update \
 && python3 -c 'from pathlib import Path; from swingbot_worker.rootfs.debian import fetched; fetched("netperf", Path("/tmp"))' \
 && install -D -t /benchmarks /tmp/debian/netperf/usr/bin/netperf /tmp/debian/netperf/usr/bin/netserver

# The one testbox that needs nothing but a processor; others come as files mounted over workers/testboxes.
FROM python AS sources
WORKDIR /opt/swingbot
COPY . .
RUN find workers/testboxes -type f ! -name vm-icount.yaml -delete && python3 -m compileall -q jobs master db workers

FROM sources AS service-sources
RUN rm -r workers/swingbot_worker

# Who works for the service has nothing of its inside: no way of thinking, no tables.
FROM sources AS worker-sources
RUN rm -r master db

FROM python AS service
COPY --from=service-venv /opt/swingbot/.venv /opt/swingbot/.venv
COPY --from=service-sources /opt/swingbot /opt/swingbot
USER 10001:10001
WORKDIR /var/lib/swingbot
CMD ["swingbot", "--help"]

FROM python AS worker
# gcc to xz-utils: kernel builds.  bubblewrap: the walls around them.  qemu to procps: testboxes, and what runs inside them.
RUN apt-get -qq update \
 && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends \
      make gcc libc6-dev flex bison bc libelf-dev libssl-dev cpio kmod rsync xz-utils patch ccache bubblewrap \
      qemu-system-x86 busybox rt-tests linux-perf procps >/dev/null \
 && rm -rf /var/lib/apt/lists/*
COPY --from=netperf /benchmarks /opt/swingbot/benchmarks
ENV SWINGBOT_BENCHMARKS_DIR=/opt/swingbot/benchmarks
COPY --from=worker-venv /opt/swingbot/.venv /opt/swingbot/.venv
COPY --from=worker-sources /opt/swingbot /opt/swingbot
USER 10001:10001
WORKDIR /var/lib/swingbot
CMD ["swingbot-worker", "--help"]
