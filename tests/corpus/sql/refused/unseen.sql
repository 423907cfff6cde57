SELECT NO_SUCH_FUNCTION(order_id) AS f FROM orders;
SELECT amount + order_id > TRUE AS f FROM orders;
SELECT CAST(tags AS INT) AS c FROM clicks;
SELECT order_id, carrier FROM orders NATURAL JOIN shipments;
SELECT o.order_id, x.n FROM orders o, LATERAL (SELECT o.quantity + 1 AS n) AS x;
SELECT ARRAY[1] || ARRAY[2] AS a FROM orders;
SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), 5));
