# What a pipeline's steps run in: the marvec command with its extras pack and vertex, on the base of the servers.
#
#     docker build -f docker/base.Dockerfile -t marvec-base --build-arg TORCH_INDEX=URL .
#     docker build -f docker/tools.Dockerfile -t marvec-tools --build-arg BASE_IMAGE=marvec-base .
#
# The folder that is sent is narrowed by tools.Dockerfile.dockerignore, which BuildKit and podman read.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
USER 0
COPY . /tmp/marvec
# The base's torch stays: the constraints name the release that it has.
RUN python -m pip install --no-cache-dir --disable-pip-version-check \
        --constraint /tmp/marvec/requirements/constraints.txt '/tmp/marvec[pack,vertex]' \
    && rm -rf /tmp/marvec \
    && marvec --help > /dev/null
USER 1000:1000
ENTRYPOINT []
CMD ["marvec", "--help"]
