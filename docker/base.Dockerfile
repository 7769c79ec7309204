# A maintained base with the layout of pytorch/torchserve: the same user, folders, PATH and Java, on a Python and a
# torch that still get repairs. For CPUs.
#
#     docker build -f docker/base.Dockerfile -t marvec/torchserve:0.12.0-cpu --build-arg TORCH_INDEX=URL .
#
# TORCH_INDEX is a package index with CPU builds of torch; on x86-64 the default index has CUDA builds alone.
ARG DEBIAN_IMAGE=debian:bookworm-slim

FROM ${DEBIAN_IMAGE} AS packages
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3.11 python3.11-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3.11 -m venv /home/venv
ENV PATH=/home/venv/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY docker/requirements /requirements
ARG TORCH_INDEX=
# Without its dependencies, which the second line brings: those of a CUDA build would be four gigabytes. Headers and test
# programs are for building against torch, not for running it.
RUN { python -m pip install --no-deps --require-hashes --only-binary :all: ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} \
        --requirement /requirements/torch.txt \
        || { echo "Found no torch for CPUs: name an index that has it, --build-arg TORCH_INDEX=URL" >&2; exit 1; }; } \
    && python -m pip install --require-hashes --only-binary :all: --requirement /requirements/base-py311.txt \
    && torch=/home/venv/lib/python3.11/site-packages/torch \
    && find "$torch/bin" -type f -not -name torch_shm_manager -delete \
    && rm -rf "$torch/include" "$torch/share" "$torch/test" "$torch"/lib/*.a \
    && python -c 'import torch'

FROM ${DEBIAN_IMAGE}
# The JRE's package fails to configure where Debian's slim images have left out the manuals' folders.
RUN mkdir -p /usr/share/man/man1 \
    && apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates openjdk-17-jre-headless python3.11 \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/debconf/*-old /var/log/apt /var/log/dpkg.log /tmp/* \
    && useradd --create-home --uid 1000 model-server \
    && install --directory --owner model-server --group model-server \
        /home/model-server/tmp /home/model-server/model-store
COPY --from=packages /home/venv /home/venv
ENV PATH=/home/venv/bin:$PATH TEMP=/home/model-server/tmp PYTHONUNBUFFERED=TRUE LANG=C.UTF-8
USER 1000:1000
WORKDIR /home/model-server
