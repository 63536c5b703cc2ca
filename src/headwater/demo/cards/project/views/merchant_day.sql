-- description: Payments and disputes of each merchant, by the day of the payment

SELECT t.merchant, t.day, count(*) AS payments, sum(t.cents) AS cents, count(c.transaction_id) AS disputed
FROM transactions t LEFT JOIN chargebacks c ON t.transaction_id = c.transaction_id
GROUP BY t.merchant, t.day
