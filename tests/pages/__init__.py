"""The pages of the repository: what they show is what happens."""
