"""A courier of somebody else's package: it uses nothing of privada but the interface of couriers."""

import threading
from urllib.parse import urlsplit

from privada.exchange.courier import PollingCourier, check_key, check_prefix, check_size

LOFTS: dict[str, dict[str, bytes]] = {}
LOCK = threading.Lock()


class PigeonCourier(PollingCourier):
    """Items in lofts of this process: ``pigeon://NAME``."""

    shortest_pause, longest_pause = 0.01, 0.1

    def __init__(self, name):
        super().__init__()
        self._loft = LOFTS.setdefault(name, {})

    @classmethod
    def from_url(cls, url):
        return cls(urlsplit(url).netloc)

    def put(self, key, blob):
        check_size(check_key(key), len(blob), self.largest)
        with LOCK:
            is_new = key not in self._loft
            return is_new and self._loft.setdefault(key, blob) is blob

    def get(self, key, *, largest=None):
        blob = self._loft.get(check_key(key))
        if blob is not None:
            check_size(key, len(blob), self.largest if largest is None else largest)
        return blob

    def keys(self, prefix):
        check_prefix(prefix)
        return sorted(key for key in [*self._loft] if key.startswith(prefix))

    def check_writable(self, prefix):
        check_prefix(prefix)
