"""Where an answer is computed: in threads of one process, or on a cluster of the owner's own."""
