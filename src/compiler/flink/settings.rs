//! `SET` statements of a job, from the model's `flink` block, in the order of the language's table.

use serde_json::{Map, Value};

use crate::project::model::Model;

use super::number;

pub(super) fn lines(model: &Model) -> Vec<String> {
    let Some(flink) = &model.flink else { return Vec::new() };
    let mut lines = Vec::new();
    let mut set = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            lines.push(format!("SET '{key}' = '{}';", value.replace('\'', "''")));
        }
    };
    let milliseconds = |value: Option<String>| value.map(|value| format!("{value}ms"));
    let megabytes = |value: Option<String>| value.map(|value| format!("{value}mb"));
    let empty = Map::new();
    let of = |block: &Option<Map<String, Value>>| block.clone().unwrap_or_else(|| empty.clone());
    set("parallelism.default", flink.parallelism.map(|value| value.to_string()));
    set("table.exec.state.ttl", flink.state_ttl_ms.map(duration));
    set("state.backend", flink.state_backend.clone());
    set("execution.checkpointing.interval", milliseconds(flink.checkpoint_interval_ms.map(|value| value.to_string())));
    let checkpoint = of(&flink.checkpoint);
    set("execution.checkpointing.timeout", milliseconds(number(&checkpoint, "timeout_ms")));
    set("execution.checkpointing.min-pause", milliseconds(number(&checkpoint, "min_pause_ms")));
    set("execution.checkpointing.max-concurrent-checkpoints", number(&checkpoint, "max_concurrent"));
    set("execution.checkpointing.mode", number(&checkpoint, "mode").map(|mode| mode.to_ascii_uppercase()));
    set(
        "execution.checkpointing.externalized-checkpoint-retention",
        number(&checkpoint, "externalized").map(|kept| kept.to_ascii_uppercase()),
    );
    set("execution.checkpointing.unaligned.enabled", number(&checkpoint, "unaligned"));
    set("state.backend.incremental", number(&checkpoint, "incremental"));
    let rocksdb = of(&flink.rocksdb);
    set("state.backend.rocksdb.block.cache-size", megabytes(number(&rocksdb, "block_cache_size_mb")));
    set("state.backend.rocksdb.writebuffer.size", megabytes(number(&rocksdb, "write_buffer_size_mb")));
    set("state.backend.rocksdb.predefined-options", number(&rocksdb, "predefined_options"));
    let resources = of(&flink.resources);
    set("taskmanager.memory.process.size", megabytes(number(&resources, "taskmanager_memory_mb")));
    set("taskmanager.numberOfTaskSlots", number(&resources, "taskmanager_slots"));
    set("jobmanager.memory.process.size", megabytes(number(&resources, "jobmanager_memory_mb")));
    if let Some(restart) = &flink.restart_strategy {
        let kind = number(restart, "type").unwrap_or_else(|| "fixed-delay".to_owned());
        set("restart-strategy.type", Some(kind.clone()));
        let prefix = format!("restart-strategy.{kind}");
        let mut option = |name: &str, value: Option<String>| set(&format!("{prefix}.{name}"), value);
        match kind.as_str() {
            "fixed-delay" => {
                option("attempts", number(restart, "attempts"));
                option("delay", milliseconds(number(restart, "delay_ms")));
            }
            "failure-rate" => {
                option("max-failures-per-interval", number(restart, "max_failures_per_interval"));
                option("failure-rate-interval", milliseconds(number(restart, "failure_rate_interval_ms")));
                option("delay", milliseconds(number(restart, "delay_ms")));
            }
            "exponential-delay" => {
                option("initial-backoff", milliseconds(number(restart, "initial_backoff_ms")));
                option("max-backoff", milliseconds(number(restart, "max_backoff_ms")));
                option("backoff-multiplier", number(restart, "backoff_multiplier"));
            }
            _ => {}
        }
    }
    lines
}

/// Milliseconds in the largest unit that divides them.
fn duration(milliseconds: i64) -> String {
    for (unit, length) in [("h", 3_600_000), ("min", 60_000), ("s", 1_000)] {
        if milliseconds % length == 0 {
            return format!("{} {unit}", milliseconds / length);
        }
    }
    format!("{milliseconds} ms")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::testing::model;
    use crate::project::model::FlinkBlock;

    #[test]
    fn a_state_ttl_is_written_in_the_largest_unit_that_divides_it() {
        for (ttl, text) in [(3_600_000, "1 h"), (90_000, "90 s"), (1_500, "1500 ms"), (120_000, "2 min")] {
            let flink = FlinkBlock { state_ttl_ms: Some(ttl), ..FlinkBlock::default() };
            let model = Model { flink: Some(flink), ..model("m") };
            assert_eq!(lines(&model), [format!("SET 'table.exec.state.ttl' = '{text}';")]);
        }
    }

    #[test]
    fn settings_stand_in_the_order_of_the_language() {
        let map = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
        let flink = FlinkBlock {
            parallelism: Some(4),
            state_backend: Some("rocksdb".into()),
            checkpoint_interval_ms: Some(1000),
            checkpoint: Some(map(r#"{"mode": "exactly_once", "unaligned": true, "timeout_ms": 5}"#)),
            rocksdb: Some(map(r#"{"block_cache_size_mb": 64}"#)),
            restart_strategy: Some(map(r#"{"attempts": 3, "delay_ms": 10}"#)),
            ..FlinkBlock::default()
        };
        let found = lines(&Model { flink: Some(flink), ..model("m") });
        let expected = [
            "SET 'parallelism.default' = '4';",
            "SET 'state.backend' = 'rocksdb';",
            "SET 'execution.checkpointing.interval' = '1000ms';",
            "SET 'execution.checkpointing.timeout' = '5ms';",
            "SET 'execution.checkpointing.mode' = 'EXACTLY_ONCE';",
            "SET 'execution.checkpointing.unaligned.enabled' = 'true';",
            "SET 'state.backend.rocksdb.block.cache-size' = '64mb';",
            "SET 'restart-strategy.type' = 'fixed-delay';",
            "SET 'restart-strategy.fixed-delay.attempts' = '3';",
            "SET 'restart-strategy.fixed-delay.delay' = '10ms';",
        ];
        assert_eq!(found, expected);
    }
}
