"""Run one ONNX hypothesis on some rows, in a process that its owner limits and can kill.

Reads ``memory seconds rows width model-length`` as five little-endian integers, then the
rows as float64 and the model, from standard input; writes one int64 code a row. Records
are run one at a time, so no record can see another one, whatever the graph does.
"""

from __future__ import annotations

import resource
import struct
import sys

HEADER = struct.Struct("<5q")


def main() -> None:
    """Answer once."""
    stream = sys.stdin.buffer
    memory, seconds, rows, width, length = HEADER.unpack(stream.read(HEADER.size))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    data, model = stream.read(8 * rows * width), stream.read(length)

    import numpy as np
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    entry, output = session.get_inputs()[0], session.get_outputs()[0].name
    kind = np.float32 if entry.type == "tensor(float)" else np.float64
    X = np.frombuffer(data, dtype="<f8").reshape(rows, width).astype(kind)
    codes = np.full(rows, -1, dtype="<i8")
    for i in range(rows):
        found = np.asarray(session.run([output], {entry.name: X[i : i + 1]})[0])
        if found.size == 1 and found.dtype.kind in "iub":
            codes[i] = found.reshape(-1)[0]
    sys.stdout.buffer.write(codes.tobytes())


if __name__ == "__main__":
    main()
