"""Settings that every test shares."""

from __future__ import annotations

import os

from hypothesis import settings

# "ci" draws the same examples on every machine; EVENHAND_HYPOTHESIS=thorough looks for new ones.
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("thorough", deadline=None, derandomize=False, print_blob=True, max_examples=2000)
settings.load_profile(os.environ.get("EVENHAND_HYPOTHESIS", "ci"))
