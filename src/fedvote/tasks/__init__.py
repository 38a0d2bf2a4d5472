"""What a network learns: the loss that training minimises, and the metric that judges the result."""
