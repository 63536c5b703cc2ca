-- description: Revenue by day and size of the order

SELECT CAST(ordered_at AS date) AS day, order_size(amount) AS size, count(*) AS orders, sum(amount) AS revenue
FROM orders
GROUP BY CAST(ordered_at AS date), order_size(amount)
