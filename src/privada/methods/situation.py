"""Who holds what, and what is wanted: by which a newcomer finds the method."""

from __future__ import annotations

from dataclasses import dataclass

WANTS = {
    "model": "a model that predicts a label or a number",
    "points": "a choice of public points that serve people who are not served yet",
    "rows": "training rows from several owners",
    "counts": "counts, means or histograms",
    "score": "how well a model that you have does on private rows",
}
SIDES = {
    "target": "the rows that the model is for are private; they have labels",
    "source": "labelled rows of another domain are private; the rows that the model is for are yours",
}
YOURS = {
    "labelled": "you have labelled rows of another domain",
    "unlabelled": "you have rows without labels",
}


@dataclass(frozen=True, kw_only=True)
class Situation:
    """When a method is the one to take.

    Attributes
    ----------
    want : str
        One of `WANTS`.
    private : str, default=""
        One of `SIDES`, for a model.
    yours : str, default=""
        One of `YOURS`, for a model.
    because : str
        Why it fits, in a sentence.
    """

    want: str
    private: str = ""
    yours: str = ""
    because: str

    def fits(self, *, want: str, private: str = "", yours: str = "") -> bool:
        """Whether nothing that was said speaks against it; what was not said is left open."""
        answers = ((self.want, want), (self.private, private), (self.yours, yours))
        return all(not answer or not own or own == answer for own, answer in answers)


__all__ = ["SIDES", "WANTS", "YOURS", "Situation"]
