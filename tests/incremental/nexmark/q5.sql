-- Which auctions had the most bids of the last ten seconds, told every two seconds?
WITH counted AS (
    SELECT auction, count(*) AS num, window.start AS starttime, window.end AS endtime
    FROM bid
    GROUP BY auction, window(date_time, '10 seconds', '2 seconds')
),
most AS (SELECT max(num) AS maxn, starttime, endtime FROM counted GROUP BY starttime, endtime)
SELECT c.auction, c.num, c.starttime, c.endtime
FROM counted c JOIN most m ON c.starttime = m.starttime AND c.endtime = m.endtime AND c.num >= m.maxn
