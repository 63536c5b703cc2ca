-- What is the average of the highest bids of each category's auctions?
SELECT category, avg(final) AS average
FROM (
    SELECT max(b.price) AS final, a.category
    FROM auction a, bid b
    WHERE a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
    GROUP BY a.id, a.category
)
GROUP BY category
