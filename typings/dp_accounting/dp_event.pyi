from collections.abc import Sequence
from typing import Any, ClassVar

class DpEvent:
    __attrs_attrs__: ClassVar[Any]

class NoOpDpEvent(DpEvent): ...

class GaussianDpEvent(DpEvent):
    noise_multiplier: float
    def __init__(self, noise_multiplier: float) -> None: ...

class LaplaceDpEvent(DpEvent):
    noise_multiplier: float
    def __init__(self, noise_multiplier: float) -> None: ...

class DiscreteLaplaceDpEvent(DpEvent):
    noise_parameter: float
    sensitivity: int
    def __init__(self, noise_parameter: float, sensitivity: int) -> None: ...

class RandomizedResponseDpEvent(DpEvent):
    noise_parameter: float
    num_buckets: int
    def __init__(self, noise_parameter: float, num_buckets: int) -> None: ...

class ZCDpEvent(DpEvent):
    rho: float
    xi: float
    def __init__(self, rho: float, xi: float = 0) -> None: ...

class SelfComposedDpEvent(DpEvent):
    event: DpEvent
    count: int
    def __init__(self, event: DpEvent, count: int) -> None: ...

class ComposedDpEvent(DpEvent):
    events: Sequence[DpEvent]
    def __init__(self, events: Sequence[DpEvent]) -> None: ...

class SampledWithoutReplacementDpEvent(DpEvent):
    source_dataset_size: int
    sample_size: int
    event: DpEvent
    def __init__(self, source_dataset_size: int, sample_size: int, event: DpEvent) -> None: ...
