"""Time audits of large tables: 50,000 people of 20 columns, and a million of them from Parquet.

    python bench/audit.py             # both
    python bench/audit.py 50000       # one size

Wall time on two processes, kernels compiled before; memory is that of all processes together, sampled.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import skops.io
from processes import report, watched
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

NUMBERS = [f"number_{i}" for i in range(12)]
LEVELS = [f"level_{i}" for i in range(8)]
MINUTES, GIGABYTES = 2.0, 2.0
AUDIT = """
model = "model.skops"
data = "people.parquet"
label = "decision"
sensitive = ["sex"]
target = "granted"
methods = ["closest", "plausible"]
out = "report"
[actionable]
immutable = ["level_7"]
"""


def people(n: int, seed: int = 0) -> pd.DataFrame:
    """Numbers with gaps, levels as strings, a decision."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({name: rng.normal(size=n) * 10.0 ** (i % 4) for i, name in enumerate(NUMBERS)})
    score = sum(table[name] / 10.0 ** (i % 4) for i, name in enumerate(NUMBERS[:6]))
    for name in LEVELS:
        table[name] = rng.choice(["red", "green", "blue", "grey"], n)
        score = score + (table[name] == "green")
    table["sex"] = rng.choice(["woman", "man"], n)
    table["decision"] = np.where(score + 0.3 * rng.normal(size=n) > 2.5, "granted", "declined")
    table.loc[rng.random(n) < 0.02, NUMBERS[0]] = np.nan
    table[NUMBERS[1]] = table[NUMBERS[1]].round(1)
    return table


def main() -> None:
    """Run the benchmark."""
    sizes = [int(size) for size in sys.argv[1:]] or [50_000, 1_000_000]
    train = people(20_000, 1)
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    encoder = make_column_transformer((numbers, NUMBERS), (OneHotEncoder(handle_unknown="ignore"), LEVELS))
    model = make_pipeline(encoder, LogisticRegression(max_iter=500)).fit(train[NUMBERS + LEVELS], train["decision"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        skops.io.dump(model, folder / "model.skops")
        (folder / "audit.toml").write_text(AUDIT, encoding="utf-8")
        for n in sizes:
            people(n).to_parquet(folder / "people.parquet", index=False)
            command = [sys.executable, "-m", "evenhand", "audit", str(folder / "audit.toml"), "--jobs", "2"]
            code, minutes, gigabytes = watched(command, os.environ | {"OPENBLAS_NUM_THREADS": "1"})
            if code not in (0, 1, 3):
                sys.exit(f"evenhand audit failed with exit code {code}.")
            found = json.loads((folder / "report" / "audit.json").read_text(encoding="utf-8"))["audited"]
            print(
                f"{n:,} people, {found['explained']:,} of whom need an explanation; "
                f"{found['people']:,} x {found['draws']} variations: {minutes:.2f} min, {gigabytes:.2f} GB."
            )
            if n == sizes[0]:
                report(f"minutes, {n:,} people", MINUTES, minutes)
            report(f"memory of all processes, {n:,} people, GB", GIGABYTES, gigabytes)


if __name__ == "__main__":
    main()
