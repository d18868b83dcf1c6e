"""CSV as people have it: separators, decimal commas, encodings, compression, dates and words for nothing."""
