SELECT region, count(*) AS payments, sum(amount) AS total
FROM {{ ref('paid') }} AS paid JOIN {{ ref('customers') }} AS customers ON customer = customers.id
GROUP BY region
