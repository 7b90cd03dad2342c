"""What approximate kappa-policy iteration costs and how well its oracles do.

    python benchmarks/approximate.py speed     1e4 states, 1e7 samples: seconds of every oracle that learns from samples
    python benchmarks/approximate.py budget    delta against the budget, mean and spread over seeds, two models
    python benchmarks/approximate.py kappa     loss against kappa at equal sample budget, over many random models

Every table is printed as it is made. `--quick` makes each of them smaller by an order of magnitude.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import tightrope as tr
from tightrope.approximate import (
    LSPI,
    ApproximateVI,
    ConservativePI,
    Exact,
    ExactValue,
    FittedQ,
    KappaAPI,
    LSTDValue,
    Noisy,
    PolicySearch,
    Problem,
    SampledModel,
    SwitchingPolicy,
    WorstCase,
    realised_delta,
    run,
)
from tightrope.model.problems import garnet, gridworld

KAPPAS = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 0.99, 1.0)


def speed(quick: bool) -> None:
    n_states, samples = (1_000, 1_000_000) if quick else (10_000, 10_000_000)
    mdp = garnet(n_states, 4, 5, gamma=0.95, seed=0)
    v, nu = tr.value(mdp, tr.Policy.uniform(mdp)), np.full(n_states, 1.0 / n_states)
    problem = Problem.original(mdp).surrogate(v, 0.9)
    worst = realised_delta(problem, tr.Policy.uniform(mdp), nu)
    print(f"{mdp!r}, kappa=0.9; acting at random has delta {worst:.3g}\n")
    print("| oracle | samples | seconds | CPU seconds | delta |\n|---|---|---|---|---|")
    for oracle in (
        SampledModel(samples // mdp.n_pairs),
        ConservativePI(samples, rounds=200),
        FittedQ(samples=samples),
        LSPI(samples=samples),
        PolicySearch(samples),
    ):
        before, begin, cpu = problem.meter.samples, time.perf_counter(), time.process_time()
        pi = oracle(problem, nu, np.random.default_rng(0))
        spent, cpu = time.perf_counter() - begin, time.process_time() - cpu
        used = problem.meter.samples - before
        print(f"| {oracle!r} | {used:,} | {spent:.1f} | {cpu:.1f} | {realised_delta(problem, pi, nu):.3g} |", flush=True)
    sigma = SwitchingPolicy(0.9, [tr.greedy(mdp, v)] * 10, tr.Policy.uniform(mdp))
    sigma.monte_carlo(mdp, 10)
    begin = time.perf_counter()
    found = sigma.monte_carlo(mdp, samples // 500, seed=0)
    spent = time.perf_counter() - begin
    exact = float(mdp.start @ sigma.value(mdp))
    print(f"\nsigma, {samples // 500:,} walks: {spent:.1f} s, {found.mean:.4f} +- {found.standard_error:.4f} (exact {exact:.4f})")


def budget(quick: bool) -> None:
    seeds = 3 if quick else 10
    families = {
        "WorstCase(delta)": [WorstCase(d) for d in (1.0, 0.1, 0.01)],
        "Noisy(sigma)": [Noisy(s) for s in (1.0, 0.1, 0.01)],
        "ApproximateVI(sweeps)": [ApproximateVI(n) for n in (0, 1, 4, 16)],
        "SampledModel(n)": [SampledModel(n) for n in (1, 4, 16, 64)],
        "ConservativePI(samples)": [ConservativePI(n, rounds=n // 4_000) for n in (100_000, 400_000, 1_600_000)],
        "FittedQ(samples)": [FittedQ(samples=n) for n in (1_000, 10_000, 100_000)],
        "LSPI(samples)": [LSPI(samples=n) for n in (1_000, 10_000, 100_000)],
        "PolicySearch(samples)": [PolicySearch(n) for n in (1_000, 10_000, 100_000, 1_000_000)],
    }
    models = {"gridworld 10x10": gridworld(10, 10, gamma=0.95), "Garnet 200 states": garnet(200, 4, 5, gamma=0.95, seed=1)}
    for name, mdp in models.items():
        v, nu = tr.value(mdp, tr.Policy.uniform(mdp)), np.full(mdp.n_states, 1.0 / mdp.n_states)
        problem = Problem.original(mdp).surrogate(v, 0.9)
        print(f"\n{name}, kappa=0.9, {seeds} seeds; acting at random: {realised_delta(problem, problem.uniform(), nu):.3g}\n")
        print("| oracle | budget | samples | delta, mean | +- std |\n|---|---|---|---|---|")
        for family, oracles in families.items():
            for oracle in oracles:
                before = problem.meter.samples
                many = 1 if isinstance(oracle, (WorstCase, ApproximateVI)) else seeds
                found = [realised_delta(problem, oracle(problem, nu, np.random.default_rng(s)), nu) for s in range(many)]
                used = (problem.meter.samples - before) // many
                amount = next(getattr(oracle, x) for x in ("samples", "n", "sweeps", "sigma", "delta") if hasattr(oracle, x))
                spread = f"{np.std(found, ddof=1):.2g}" if many > 1 else "-"
                print(f"| {family} | {amount:,} | {used:,} | {np.mean(found):.3g} | {spread} |", flush=True)


def equal_budget(mdp, kappa: float, samples: int, regime: str, spent_on: str, seed: int) -> float:
    """The loss of kappa-API that may draw a given number of samples, in all or in every iteration.

    "in all": as many iterations as the rate xi of the theorem asks for until the start counts for 5 %, at most 12, and the
    samples spread evenly over them. "per iteration": 8 iterations. (One with kappa = 1, in both.) Samples go to the oracle,
    to the evaluation, or half to each; the part without samples is exact.
    """
    rate = tr.xi(mdp.gamma, kappa)
    needed = 1 if rate == 0.0 else int(np.clip(np.ceil(np.log(0.05) / np.log(rate)), 1, 12))
    iterations, each = (needed, samples // needed) if regime == "in all" else (8, samples)
    each //= 2 if spent_on == "both" else 1
    oracle = Exact() if spent_on == "values" else SampledModel(max(1, each // mdp.n_pairs))
    evaluate = ExactValue() if spent_on == "oracle" else LSTDValue(samples=each)
    uniform = np.full(mdp.n_states, 1.0 / mdp.n_states)
    return run(mdp, KappaAPI(kappa, oracle, iterations=iterations, evaluate=evaluate), seed=seed, mu=uniform).loss


def kappa(quick: bool, picture: str | None) -> None:
    models = 20 if quick else 100
    titles = {"oracle": "samples for the oracle, v exact", "values": "samples for v, oracle exact", "both": "half and half"}
    for regime, samples in (("in all", 20_000), ("per iteration", 1_000)):
        subtitle = f"κ-API, {samples:,} samples {regime}, {models} Garnets (30 states, 3 actions, γ = 0.95)"
        print(f"\n{subtitle}; mean loss +- standard error\n")
        print("| samples spent on | " + " | ".join(f"{k:g}" for k in KAPPAS) + " |\n|" + "---|" * (len(KAPPAS) + 1))
        losses = {}
        for spent_on, title in titles.items():
            table = np.array(
                [
                    [equal_budget(garnet(30, 3, 4, gamma=0.95, seed=i), k, samples, regime, spent_on, i) for k in KAPPAS]
                    for i in range(models)
                ]
            )
            losses[title] = table
            mean, error = table.mean(axis=0), table.std(axis=0, ddof=1) / np.sqrt(models)
            print(f"| {spent_on} | " + " | ".join(f"{m:.3f} +- {e:.3f}" for m, e in zip(mean, error, strict=True)) + " |")
            gap = table - table[:, [int(mean.argmin())]]
            paired = gap.mean(axis=0) / (gap.std(axis=0, ddof=1) / np.sqrt(models) + 1e-300)
            print("| standard errors above the best, paired | " + " | ".join(f"{z:.1f}" for z in paired) + " |", flush=True)
        if picture is not None:
            from tightrope.views import style
            from tightrope.views.plot_approximate import loss_against_kappa

            path = f"{picture}-{regime.replace(' ', '-')}.png"
            Path(path).write_bytes(style.png(loss_against_kappa(KAPPAS, losses, subtitle=subtitle)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "budget", "kappa"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--picture", help="with kappa: draw the tables into PICTURE-in-all.png and PICTURE-per-iteration.png")
    chosen = parser.parse_args()
    if chosen.what == "kappa":
        kappa(chosen.quick, chosen.picture)
    else:
        {"speed": speed, "budget": budget}[chosen.what](chosen.quick)
