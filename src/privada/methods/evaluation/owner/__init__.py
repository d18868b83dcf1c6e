"""Private: how it is answered; the only folder of the room that sees rows."""
