"""Plans: every number of a run, decided before it begins."""

from tests.golden import product
from tests.golden.entries import Golden


def run(golden: Golden) -> None:
    """All recipes of both stages, for a CPU and for a GPU."""
    for device in ("cpu", "cuda"):
        for stage, plans in (
            ("pretrain", product.pretraining_plans(device)),
            ("kfold", product.kfold_plans(device)),
        ):
            for recipe, by_start in plans:
                golden.add(f"plan/{stage}/{device}/{recipe}", by_start)
