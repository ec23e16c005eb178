# tokendyno on a host with an NVIDIA GPU and the NVIDIA Container Toolkit; without a GPU it runs on the CPU.
#   docker build -t tokendyno .
#   docker run --gpus all -p 7860:7860 -v tokendyno:/home/user/.local/share/tokendyno tokendyno
# torch brings CUDA along; torch.compile and Triton need a C++ compiler.
FROM python:3.12-slim
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --uid 1000 user && \
    cd /home/user && install -d -o user -g user app .local .local/share .local/share/tokendyno
WORKDIR /home/user/app
# Not requirements.txt, which is for Spaces without a GPU.
COPY pyproject.toml .
RUN python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" \
    > /tmp/requirements.txt && pip install --no-cache-dir -r /tmp/requirements.txt
COPY --chown=user . .
USER user
# Others reach it, so its mode is public unless TOKENDYNO_MODE and users say otherwise (docs/hosting.md).
ENV TOKENDYNO_HOST=0.0.0.0
EXPOSE 7860
CMD ["python", "app.py"]
