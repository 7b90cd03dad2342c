"""What is solved: models, policies, the problem zoo and model files."""
