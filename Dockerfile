# An owner's process. Rows, key, ledger and owner.toml stay outside, in a folder that is mounted at /data:
#   docker build --tag privada-owner .
#   docker run --rm --user "$(id -u)" --volume "$PWD/clinic:/data" privada-owner owner check owner.toml
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/privada \
 && /opt/privada/bin/pip install --no-cache-dir --constraint constraints.txt '.[onnx,postgres,bucket,sql]'

FROM python:3.12-slim
COPY --from=build /opt/privada /opt/privada
ENV PATH=/opt/privada/bin:$PATH PYTHONDONTWRITEBYTECODE=1
RUN useradd --create-home owner
USER owner
WORKDIR /data
ENTRYPOINT ["privada"]
