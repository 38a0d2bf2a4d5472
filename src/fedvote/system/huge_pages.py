"""Ask for huge pages for torch's large tensors on a CPU, so that fresh memory costs fewer page faults.

A large tensor gets fresh memory from the operating system, page by page. An evaluation of LeNet-5 in batches of 900
images spent a third of its time on that. torch reads the setting with its first tensor. It has no effect where the
system has no transparent huge pages. A setting of the user's own is kept.
"""

import os

os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
