"""Types of the part of dp-accounting that privada uses; the package has none of its own."""

from . import dp_event as dp_event
from . import pld as pld
from .dp_event import ComposedDpEvent as ComposedDpEvent
from .dp_event import DiscreteLaplaceDpEvent as DiscreteLaplaceDpEvent
from .dp_event import DpEvent as DpEvent
from .dp_event import GaussianDpEvent as GaussianDpEvent
from .dp_event import LaplaceDpEvent as LaplaceDpEvent
from .dp_event import NoOpDpEvent as NoOpDpEvent
from .dp_event import RandomizedResponseDpEvent as RandomizedResponseDpEvent
from .dp_event import SampledWithoutReplacementDpEvent as SampledWithoutReplacementDpEvent
from .dp_event import SelfComposedDpEvent as SelfComposedDpEvent
from .dp_event import ZCDpEvent as ZCDpEvent
