-- description: What each customer has paid, and how
-- online:
--   customer_online: {key: customer_id}

SELECT customer_id, count(*) AS payments, sum(cents) AS cents, max(cents) AS largest, max(paid_at) AS last_paid
FROM transactions
GROUP BY customer_id
