SELECT order_id FROM orders UNION ALL SELECT order_id FROM shipments;
SELECT order_id FROM orders UNION ALL SELECT order_id FROM shipments UNION ALL SELECT id FROM sensors;
(SELECT order_id FROM orders) UNION ALL (SELECT order_id FROM shipments);
WITH big AS (SELECT order_id, amount FROM orders WHERE amount > 100) SELECT order_id FROM big;
WITH big AS (SELECT order_id, ts, amount FROM orders WHERE amount > 100), named (id, t) AS (SELECT order_id, ts FROM big) SELECT id FROM named WHERE t IS NOT NULL;
WITH a AS (SELECT order_id FROM orders), b AS (SELECT order_id FROM shipments) SELECT * FROM a UNION ALL SELECT * FROM b;
WITH w AS (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' HOUR))) SELECT window_start, window_end, COUNT(*) AS n FROM w GROUP BY window_start, window_end;
SELECT order_id FROM (SELECT order_id FROM orders UNION ALL SELECT order_id FROM shipments) u WHERE order_id <> '';
WITH a AS (SELECT order_id AS k FROM orders) SELECT x.k FROM a x JOIN a y ON x.k = y.k;
