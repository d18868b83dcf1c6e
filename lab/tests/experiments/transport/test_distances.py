"""Distances: both cases, their curves, and the noise that was paid for."""

import numpy as np
import pytest

from privada.report.exhibit import Figure
from privada_lab.experiments.registry import untracked
from privada_lab.experiments.transport import distances


def test_the_distance_has_both_cases_and_sampled_batches(monkeypatch, domains):
    monkeypatch.setattr(distances, "SAMPLED_EPSILONS", (8.0,))
    found = list(distances.distances(domains("googlenet", n=60), 2, untracked))
    figures = [item.figure for item in found if isinstance(item, Figure)]
    assert figures == ["wasserstein_error_vs_projection_only", "wasserstein_error_vs_projection_only_case_ii"]
    titles = [item.title for item in found if not isinstance(item, Figure)]
    assert titles == ["Wasserstein error, 8 sampled batches"]


def test_every_benchmark_has_its_curves(monkeypatch, domains):
    monkeypatch.setattr(distances, "RATIOS", (0.7, 1.3))
    found = list(distances.curves("surf", "SURF", domains("surf", n=50), 2, untracked))
    assert [each.title for each in found] == [
        "Wasserstein error, batches of 128: SURF, amazon to caltech",
        "Wasserstein error, whole sets: SURF, amazon to caltech",
    ]
    assert all(list(line.x) == [0.7, 1.3] for each in found for line in each.series)
    quick = list(distances.curves("surf", "SURF", domains("surf", n=50), 1, untracked))
    assert [list(each.series[0].x) for each in quick] == [list(distances.QUICK_RATIOS)] * 2


def test_whole_sets_that_are_too_large_are_left_out(monkeypatch, domains):
    monkeypatch.setattr(distances, "LARGE", 10)
    (batches,) = distances.curves("surf", "SURF", domains("surf", n=50), 1, untracked)
    assert "batches" in batches.title


def test_wide_features_are_scaled_for_whole_sets_as_for_batches(monkeypatch, domains):
    """SURF's features reach 255: 50 of its units are one here, whatever the rows are."""
    seen = []

    def errors(S, T, *, ratio, high, seed):
        seen.append((S.max(), high))
        return np.zeros(3)

    monkeypatch.setattr(distances, "relative_errors", errors)
    list(distances.curves("surf", "SURF", domains("surf", n=50), 1, untracked))
    largest = {round(most, 9) for most, _ in seen}
    assert len(largest) == 1
    assert {high for _, high in seen} == {50.0}


def test_the_noise_of_a_distance_is_its_ratio(domain):
    """Case (i): σ is the ratio times the largest row norm, and what is charged is the whole attribute."""
    rows = domain("d", 0, n=40).X
    found = distances.private_wasserstein(
        rows, rows, bounds=(0, 50), norm_bound=1.0, rho=50**2 / 2, relation="attribute", n_components=3
    )
    w = np.linalg.norm(distances.FeatureMap.random(30, 3, seed=0).projection, axis=1).max()
    assert float(found.release.noise["rows"]["scale"]) == pytest.approx(w, rel=1e-6)
    assert "1250" in str(found.release.guarantee)
