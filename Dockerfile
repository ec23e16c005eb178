# tokendyno on a host with an NVIDIA GPU and the NVIDIA Container Toolkit; without a GPU it runs on the CPU.
#   docker build -t tokendyno .
#   docker run --gpus all --network host -e TOKENDYNO_HOST=127.0.0.1 -e HF_TOKEN -v tokendyno:/home/user/data tokendyno
# torch brings CUDA along; torch.compile and Triton need a C++ compiler.
FROM python:3.12-slim
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --uid 1000 user && \
    install -d -o user -g user /home/user/data
WORKDIR /src
# Not requirements.txt, which is for Spaces without a GPU.
COPY pyproject.toml .
RUN python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" \
    > /tmp/requirements.txt && pip install --no-cache-dir -r /tmp/requirements.txt
COPY . .
RUN pip install --no-cache-dir --no-deps .
USER user
WORKDIR /home/user
# On the volume: history and users, models of the Hub, compiled code.
ENV XDG_DATA_HOME=/home/user/data HF_HOME=/home/user/data/huggingface TOKENDYNO_CACHE=/home/user/data/cache
# Others reach it, so its mode is public unless TOKENDYNO_MODE and users say otherwise (docs/hosting.md).
ENV TOKENDYNO_HOST=0.0.0.0
EXPOSE 7860
CMD ["tokendyno", "open", "--no-browser"]
