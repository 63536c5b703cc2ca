{{ config(materialized='table') }}

SELECT id, customer, amount FROM {{ ref('payments') }} WHERE status = 'paid'
