"""Private: how the questions are answered; the only folder of the method package that sees rows."""
