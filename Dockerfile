# An image with Knotless installed from its wheel:
#
#   docker build -t knotless .
#   docker run --rm knotless plan torus,4,4
#   docker run --rm -it --privileged knotless lab ring,4 --engine updown
#
# Fabrics are network namespaces with an Open vSwitch of their own: they need --privileged, and no
# module of the machine's kernel.
FROM debian:bookworm-slim AS build
RUN apt-get -qq update && apt-get -qq install -y --no-install-recommends \
    ca-certificates gcc git libc6-dev ocaml-nox python3-venv rustc-web cargo-web >/dev/null
COPY . /src
# Only files whose hashes are in requirements.lock, build tools included: see tools/install-locked.sh.
RUN mkdir /wheels && cd /src && tools/locked.sh own >/own.lock \
    && tools/locked.sh ryu >/wheels/ryu.lock && tools/locked.sh demo run >/wheels/run.lock
RUN python3 -m venv /build && /build/bin/pip install --quiet --require-hashes -r /own.lock \
    && /build/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /wheels /src

FROM debian:bookworm-slim
RUN apt-get -qq update && apt-get -qq install -y --no-install-recommends \
    ca-certificates ethtool iperf3 iproute2 iptables iputils-ping libjemalloc2 mininet net-tools \
    openmpi-bin openvswitch-switch python3-mpi4py python3-venv socat tcpdump >/dev/null \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /wheels /wheels
RUN python3 -m venv --system-site-packages /opt/knotless && cd /wheels \
    && pip="/opt/knotless/bin/pip install --quiet --no-cache-dir --use-pep517 --no-build-isolation" \
    && $pip --require-hashes -r ryu.lock && $pip --require-hashes -r run.lock \
    && $pip --no-deps --no-index ./*.whl \
    && rm -rf /wheels
ENV PATH=/opt/knotless/bin:$PATH
ENTRYPOINT ["knotless"]
CMD ["--help"]
