CREATE TABLE orders (
    order_id STRING,
    customer_id BIGINT,
    product STRING,
    amount DECIMAL(10, 2),
    quantity INT,
    currency STRING,
    ts TIMESTAMP(3),
    pt AS PROCTIME(),
    WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset', 'topic' = 'orders', 'properties.bootstrap.servers' = 'localhost:1', 'format' = 'json');

CREATE TABLE shipments (
    shipment_id STRING,
    order_id STRING,
    carrier STRING,
    ship_ts TIMESTAMP(3),
    WATERMARK FOR ship_ts AS ship_ts
) WITH ('connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset', 'topic' = 'shipments', 'properties.bootstrap.servers' = 'localhost:1', 'format' = 'json');

CREATE TABLE clicks (
    user_id BIGINT,
    url STRING,
    tags ARRAY<STRING>,
    attrs MAP<STRING, STRING>,
    geo ROW<country STRING, city ROW<name STRING, zip INT>>,
    items ARRAY<ROW<sku STRING, price DOUBLE>>,
    payload STRING,
    raw_bytes BYTES,
    score DOUBLE,
    ratio FLOAT,
    small SMALLINT,
    tiny TINYINT,
    ok BOOLEAN,
    on_day DATE,
    at_time TIME,
    ltz TIMESTAMP_LTZ(3),
    WATERMARK FOR ltz AS ltz - INTERVAL '1' SECOND
) WITH ('connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset', 'topic' = 'clicks', 'properties.bootstrap.servers' = 'localhost:1', 'format' = 'json');

CREATE TABLE rates (
    currency STRING,
    rate DECIMAL(10, 4),
    update_time TIMESTAMP(3),
    WATERMARK FOR update_time AS update_time,
    PRIMARY KEY (currency) NOT ENFORCED
) WITH ('connector' = 'upsert-kafka', 'topic' = 'rates', 'properties.bootstrap.servers' = 'localhost:1', 'key.format' = 'json', 'value.format' = 'json');

CREATE TABLE sensors (
    id STRING,
    temp DOUBLE,
    seen TIMESTAMP(3)
) WITH ('connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset', 'topic' = 'sensors', 'properties.bootstrap.servers' = 'localhost:1', 'format' = 'json');
