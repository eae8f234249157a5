"""Settings that hold for every test, and for the commands that tests start."""

import os

# The test models are so small that a second thread costs more than it gives, and threads that
# spin while they wait starve the other processes on a two-core machine. Set before torch loads.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# Nothing is fetched from the Hub in tests: fail at once instead of after retries.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
