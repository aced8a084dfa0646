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
    ca-certificates gcc git libc6-dev python3-venv rustc-web cargo-web >/dev/null
COPY . /src
RUN python3 -m venv /build && /build/bin/pip wheel --quiet --no-deps --wheel-dir /wheels /src

FROM debian:bookworm-slim
RUN apt-get -qq update && apt-get -qq install -y --no-install-recommends \
    ca-certificates ethtool iperf3 iproute2 iptables iputils-ping libjemalloc2 mininet net-tools \
    openmpi-bin openvswitch-switch python3-mpi4py python3-venv socat tcpdump >/dev/null \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /wheels /wheels
COPY constraints.txt /wheels/
RUN python3 -m venv --system-site-packages /opt/knotless \
    && PIP_CONSTRAINT=/wheels/constraints.txt /opt/knotless/bin/pip install --quiet --no-cache-dir \
    --use-pep517 "$(echo /wheels/*.whl)[controller,results,sweeps,web]" \
    && rm -rf /wheels
ENV PATH=/opt/knotless/bin:$PATH
ENTRYPOINT ["knotless"]
CMD ["--help"]
