-- What is each person's last bid for each auction?
SELECT auction, bidder, price, channel, url, date_time, extra
FROM (
    SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS place FROM bid
)
WHERE place <= 1
