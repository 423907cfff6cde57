SELECT order_id FROM nowhere;
SELECT o.order_id FROM orders o JOIN shipment s ON o.order_id = s.order_id;
WITH big AS (SELECT order_id FROM orders) SELECT order_id FROM bigg;
SELECT order_id FROM elsewhere.orders;
SELECT * FROM TABLE(TUMBLE(TABLE nowhere, DESCRIPTOR(ts), INTERVAL '1' HOUR));
SELECT order_id FROM orders WHERE order_id IN (SELECT order_id FROM nowhere);
WITH b AS (SELECT order_id FROM a), a AS (SELECT order_id FROM orders) SELECT order_id FROM b;
