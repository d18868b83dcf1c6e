"""Commands about questions and studies."""
