SELECT * FROM TABLE(TUMBLE(TABLE sensors, DESCRIPTOR(seen), INTERVAL '1' HOUR));
SELECT window_start, window_end, COUNT(*) AS n FROM TABLE(HOP(TABLE sensors, DESCRIPTOR(seen), INTERVAL '1' HOUR, INTERVAL '2' HOUR)) GROUP BY window_start, window_end;
SELECT * FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(amount), INTERVAL '1' HOUR, INTERVAL '2' HOUR));
SELECT COUNT(*) AS n FROM sensors GROUP BY TUMBLE(seen, INTERVAL '1' HOUR);
SELECT id, seen FROM sensors ORDER BY seen;
SELECT order_id FROM orders ORDER BY amount;
SELECT * FROM sensors MATCH_RECOGNIZE (ORDER BY seen MEASURES A.temp AS t PATTERN (A B) DEFINE A AS A.temp > 1);
SELECT id, r.rate FROM sensors JOIN rates FOR SYSTEM_TIME AS OF sensors.seen AS r ON sensors.id = r.currency;
