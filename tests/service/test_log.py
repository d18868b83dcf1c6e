"""The log is JSON, one object per line, whatever others write into names and reasons."""

import io
import json
import logging

from privada.service.log import json_log


def test_records_are_lines_of_json_and_the_log_is_as_before_afterwards():
    stream, log = io.StringIO(), logging.getLogger("privada.service")
    before = logging.getLogger("privada").handlers[:]
    with json_log(stream):
        log.info("question", extra={"owner": "clinic", "reason": "a\nb\x1b[2J" + "x" * 5000, "rows": [1, 2]})
        logging.getLogger("privada.exchange").warning("%s is passed over: %s", "key", "junk\n{}")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["event"], first["owner"]) == ("question", "clinic")
    assert first["reason"].startswith("a\\nb\\x1b")
    assert len(first["reason"]) <= 1100
    assert "rows" not in first, "only fields that are known to be public are written"
    assert second["level"] == "warning"
    assert logging.getLogger("privada").handlers == before
