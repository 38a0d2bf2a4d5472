"""How long threads of torch spin when they wait for each other: not so long that a busy machine stands still.

GNU OpenMP reads it when torch is loaded. By itself it spins for milliseconds, on a core that the thread it waits for
may need: beside two other programs on two cores, rounds of `quickstart` took 2 to 23 s, with this 0.5 to 1.4 s, and
on an idle machine as long as before. Whoever has chosen otherwise keeps that.
"""

import os

if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
    os.environ["GOMP_SPINCOUNT"] = "2000"
