import numpy as np

from privada_lab.experiments.summarization.scores import Scores, accuracy


def test_scores_are_means_over_runs():
    scores = Scores()
    for value in (1.0, 3.0):
        scores.add("ours", 50, 4, mmd2=value)
    assert scores.mean("ours", 50, 4) == 2
    assert scores.values("ours", 50, 4, "mmd2").tolist() == [1, 3]


def test_a_summary_of_one_class_predicts_it():
    found = [[0.0], [1.0]], ["a", "a"]
    tested = np.zeros((4, 1)), np.array(["a", "b", "b", "b"])
    assert accuracy("svm", (np.array(found[0]), np.array(found[1])), None, test=tested) == 25
