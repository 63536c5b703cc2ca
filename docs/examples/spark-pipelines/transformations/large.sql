CREATE MATERIALIZED VIEW large AS SELECT region, total FROM spend WHERE total >= 1000;
