# newfound as a service, or as a command: docker run newfound --help
#
#   docker build --tag newfound .                          for processors
#   docker build --tag newfound --build-arg DEVICE=cuda .  for NVIDIA cards (run it with --gpus all)
#
# A run is a folder that is mounted; compose.yaml shows how, with PostgreSQL for the journal.
ARG PYTHON=3.12

FROM python:${PYTHON}-slim AS wheel
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:${PYTHON}-slim
ARG DEVICE=cpu
SHELL ["/bin/bash", "-o", "pipefail", "-c"]

# PyTorch first, by itself: it is most of the image, and stays as it is when newfound changes. PyPI's is built for CUDA.
# hadolint ignore=DL3013
RUN case "${DEVICE}" in \
      cpu) export PIP_INDEX_URL=https://download.pytorch.org/whl/cpu ;; \
      cuda) ;; \
      *) echo "DEVICE=${DEVICE}: choose cpu or cuda" >&2; exit 1 ;; \
    esac \
    && pip install --no-cache-dir 'torch>=2.4' 'torchvision>=0.19'

# hadolint ignore=DL3013
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    wheel=$(ls /wheels/newfound-*.whl) \
    && pip install --no-cache-dir "newfound[serve,postgres,onnx] @ file://${wheel}"

# Not root. What is mounted at /runs must be writable for this user; --user gives another.
RUN useradd --uid 10001 --create-home newfound \
    && mkdir /runs /cache \
    && chown newfound:newfound /runs /cache
USER 10001
WORKDIR /runs
ENV NEWFOUND_CACHE=/cache \
    HF_HOME=/cache/huggingface \
    PYTHONUNBUFFERED=1
VOLUME ["/runs", "/cache"]
EXPOSE 8460

HEALTHCHECK --interval=30s --timeout=5s --start-period=120s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8460/healthz', timeout=4)"]
ENTRYPOINT ["newfound"]
CMD ["--help"]
