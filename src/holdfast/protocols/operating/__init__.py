"""What operators ask of a broker, and how it answers."""
