-- description: What each customer has spent
-- online:
--   customer_online: {key: customer_id}

SELECT customer_id, count(*) AS orders, sum(amount) AS total, max(ordered_at) AS last_order
FROM orders
GROUP BY customer_id
