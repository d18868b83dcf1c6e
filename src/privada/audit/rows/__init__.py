"""Generated rows to audit with: samples, single records, neighbours, arrangements."""
