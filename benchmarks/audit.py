"""What the auditors catch, what they let pass, and how near their lower bounds come to the claims.

* ``broken_caught``: share of the museum of broken mechanisms (``tests/audit/broken``) that fails its audit.
* ``sound_passed``: share of the registry's example questions that pass theirs.
* ``tightness_pure``: median, over the registry's pure questions at ε = 1 with noise on each number, of
  the lower bound over the claim, with five times as many trials. No assumption is made.
* ``tightness_gaussian``: the same for questions at (1, 1e-5), by the bound on μ, read as an ε as if
  the trade-off were Gaussian (`AuditResult.epsilon_lower_gdp`).
* ``seconds_per_question``: of the audits of the registry, process time.

The museum is not installed with the product; it is loaded by its path in the repository. The quick version
leaves out the methods whose questions are answered one by one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from statistics import median
from types import ModuleType

from benchmarks._figures import Figure, main
from privada.audit import QuestionAudit, audit_example, audit_method
from privada.methods.method import methods
from privada.privacy import PureDP
from privada.privacy.mechanism import Lattice

MUSEUM = Path(__file__).parents[1] / "tests" / "audit" / "broken"
TRIALS = 20_000
CONFIDENCE = 0.9999  # of each audit of a sound question: all pass together with 99 %
QUICK = ("cells", "summarization")
MANY = 100_000


def museum() -> ModuleType:
    """The package of broken questions."""
    name = "broken_mechanisms"
    if name not in sys.modules:
        spec = spec_from_file_location(name, MUSEUM / "__init__.py", submodule_search_locations=[str(MUSEUM)])
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def measure(quick: bool) -> Iterator[Figure]:
    """Audit the museum, then the registry."""
    yield _broken()
    start = time.process_time()
    audits = list(_sound(quick))
    seconds = (time.process_time() - start) / len(audits)
    passed = [audit.passed for audit in audits]
    for audit in audits:
        if not audit.passed:
            print(audit, file=sys.stderr)
    beside = f"example questions, {TRIALS} trials, {CONFIDENCE:.2%} confidence each"
    yield Figure("sound_passed", sum(passed) / len(passed), 1.0, "higher", beside, len(passed))
    what = "lower bound over claim"
    pure = list(_pure(quick))
    yield Figure("tightness_pure", median(pure), 0.9, "higher", f"{what}, {MANY} trials", len(pure))
    boxes = [audit.blackbox for audit in audits]
    gaussian = [box.tightness for box in boxes if (box.epsilon_claimed, box.delta) == (1.0, 1e-5)]
    yield Figure(
        "tightness_gaussian", median(gaussian), 0.6, "higher", f"{what} at (1, 1e-5), by μ", len(gaussian)
    )
    yield Figure("seconds_per_question", seconds, None, "lower", "process time", len(audits))


def _broken() -> Figure:
    exhibits = museum().EXHIBITS.values()
    missed = [exhibit.name for exhibit in exhibits if exhibit.audit(None).passed]
    for name in missed:
        print(f"missed: {name}", file=sys.stderr)
    share = 1 - len(missed) / len(exhibits)
    return Figure("broken_caught", share, 1.0, "higher", "museum of broken mechanisms", len(exhibits))


def _sound(quick: bool) -> Iterator[QuestionAudit]:
    for method in methods().values():
        if not quick or method.name in QUICK:
            yield from audit_method(method, trials=TRIALS, confidence=CONFIDENCE)


def _pure(quick: bool) -> Iterator[float]:
    for method in methods().values():
        example = method.example()
        for case in example.single_cases:
            (question,) = case.questions
            plain = all(isinstance(draw, Lattice) for draw in question.plan.draws.values())
            asked = isinstance(question.guarantee, PureDP) and question.guarantee.epsilon == 1.0
            if asked and plain and (not quick or method.name in QUICK):
                single = replace(
                    example, schema=case.schema, data=case.data, questions=(question,), further_cases=()
                )
                (audit,) = audit_example(single, trials=MANY)
                yield audit.blackbox.tightness


if __name__ == "__main__":
    main(measure, "What the auditors catch, let pass, and how tightly")
