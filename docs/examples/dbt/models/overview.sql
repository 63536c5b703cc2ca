SELECT count(*) AS regions, sum(total) AS total FROM {{ ref('spend') }}
