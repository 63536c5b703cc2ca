"""base: the nouns every room shares. It imports only the standard library, pyarrow and obstore."""
