-- In which partition of a log is each bid kept? The original writes files; here the day and the minute are columns.
SELECT
    auction, bidder, price, date_time, extra,
    date_format(date_time, 'yyyy-MM-dd') AS dt, date_format(date_time, 'HH:mm') AS hm
FROM bid
