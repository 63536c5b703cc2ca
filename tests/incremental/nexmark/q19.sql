-- Which are the ten highest bids of each auction?
SELECT *
FROM (
    SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, date_time) AS place FROM bid
)
WHERE place <= 10
