-- How often does each person bid in ten seconds? The original counts by the clock of the machine; here by the time of the bid.
SELECT bidder, count(*) AS bid_count, window.start AS starttime, window.end AS endtime
FROM bid
GROUP BY bidder, window(date_time, '10 seconds')
