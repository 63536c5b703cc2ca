-- description: Support's notes, with the payments that they are about
-- indexes:
--   case_search: {text: [body, status], keyword: [merchant]}

SELECT n.note_id, n.transaction_id, n.customer_id, c.email, t.merchant, t.cents, t.status, n.body
FROM support_notes n
JOIN transactions t ON n.transaction_id = t.transaction_id
JOIN customers c ON n.customer_id = c.customer_id
