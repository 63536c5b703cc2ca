-- What is, for each seller, the average price of the last ten auctions that were sold?
SELECT
    seller, id, date_time,
    avg(price) OVER (PARTITION BY seller ORDER BY date_time, id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS average
FROM (
    SELECT
        a.id, a.seller, b.price, b.date_time,
        row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time) AS place
    FROM auction a JOIN bid b ON a.id = b.auction
    WHERE b.date_time BETWEEN a.date_time AND a.expires
)
WHERE place <= 1
