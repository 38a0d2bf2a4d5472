"""One thread for each process: the tensors are tiny, and threads that wait for each other cost more than they save."""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported; processes that tests start inherit it
