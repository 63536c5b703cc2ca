-- What does a side table say about each bid? The side table is small and never changes.
SELECT b.auction, b.bidder, b.price, b.date_time, s.value
FROM bid b
JOIN (VALUES (0, 'zero'), (1, 'one'), (2, 'two'), (3, 'three'), (4, 'four'), (5, 'five'), (6, 'six')) AS s(key, value)
    ON mod(b.auction, 8) = s.key
