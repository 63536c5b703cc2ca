-- Who came and opened an auction within the same ten seconds?
SELECT p.id, p.name, p.starttime
FROM (
    SELECT id, name, window.start AS starttime, window.end AS endtime
    FROM person
    GROUP BY id, name, window(date_time, '10 seconds')
) p
JOIN (
    SELECT seller, window.start AS starttime, window.end AS endtime
    FROM auction
    GROUP BY seller, window(date_time, '10 seconds')
) a ON p.id = a.seller AND p.starttime = a.starttime AND p.endtime = a.endtime
