"""methods: what a `Stream` can do, by subject. Each makes a node of a plan and nothing else."""
