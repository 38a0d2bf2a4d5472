"""Shorten how long torch's threads spin while they wait for each other, so that a busy machine does not stall.

GNU OpenMP reads the setting when torch is loaded. By default it spins for milliseconds, on a core that the awaited
thread may need. Beside two other programs on two cores, rounds of `quickstart` took 2 to 23 s by default and 0.5 to
1.4 s with this setting; an idle machine showed no difference. A setting of the user's own is kept.
"""

import os

if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
    os.environ["GOMP_SPINCOUNT"] = "2000"
