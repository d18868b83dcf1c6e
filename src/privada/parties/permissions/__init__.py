"""Who may ask an owner what: the policy, the learners that it knows, and what is checked before a charge."""
