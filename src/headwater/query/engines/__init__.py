"""engines: who computes the rows. DuckDB by default, DataFusion and Spark on request; same SQL, same rows."""
