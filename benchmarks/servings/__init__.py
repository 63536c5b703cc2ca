"""What the benchmark of online tables is made of."""
