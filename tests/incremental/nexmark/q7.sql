-- Which are the highest bids of each ten seconds?
SELECT b.auction, b.price, b.bidder, b.date_time, b.extra
FROM bid b
JOIN (
    SELECT max(price) AS maxprice, window.start AS starttime, window.end AS endtime
    FROM bid
    GROUP BY window(date_time, '10 seconds')
) w ON b.price = w.maxprice
WHERE b.date_time >= w.starttime AND b.date_time < w.endtime
