//! Projects of any size that look like real ones: a source for every ten models, models in files of 25, every model
//! has columns, config and an owner, every fifth has a contract, every tenth a test, and every source a reader. With SQL,
//! every second model selects from a source or from the model before it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::Failure;

const MODELS_A_FILE: usize = 25;

/// What a generated project is like.
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    pub name: &'a str,
    pub models: usize,
    pub servers: &'a str,
    /// Of every topic's name.
    pub prefix: &'a str,
    /// Every second model has SQL, and the runtime has Flink.
    pub sql: bool,
    /// `deployment_state`, if it is not the default.
    pub state: &'a str,
}

impl Default for Shape<'_> {
    fn default() -> Self {
        Self { name: "perf", models: 0, servers: "localhost:9092", prefix: "perf.", sql: false, state: "" }
    }
}

/// The common beginning of the topics of the models.
pub fn model_topics(prefix: &str) -> String {
    format!("{prefix}model.")
}

pub fn project(shape: &Shape<'_>, directory: &Path) -> Result<(), Failure> {
    let Shape { name, models, servers, prefix, sql, state } = *shape;
    let sources = (models / 10).max(1);
    for folder in ["sources", "models", "tests", "exposures"] {
        fs::create_dir_all(directory.join(folder))?;
    }
    let flink = if sql {
        "  flink:\n    default: main\n    clusters:\n      main:\n        rest_url: http://localhost:8081\n        sql_gateway_url: http://localhost:8083\n"
    } else {
        ""
    };
    fs::write(
        directory.join("stream_project.yml"),
        format!(
            "apiVersion: streamt.dev/v1alpha1\nproject:\n  name: {name}\n  version: \"1.0.0\"\nruntime:\n  kafka:\n    bootstrap_servers: {servers}\n{flink}{state}"
        ),
    )?;
    write_files(directory, "sources", sources, |index| source(index, prefix))?;
    write_files(directory, "models", models, |index| model(index, sources, prefix, sql))?;
    write_files(directory, "tests", models / 10, |index| {
        format!(
            "  - name: model_{:05}_id\n    model: model_{:05}\n    type: schema\n    assertions:\n      - not_null:\n          columns: [id]\n",
            index * 10,
            index * 10
        )
    })?;
    let exposures = models / 50;
    write_files(directory, "exposures", exposures, |index| {
        let mut text = format!(
            "  - name: app_{index:05}\n    type: application\n    role: consumer\n    owner: team-{}\n    consumer_group: app-{index:05}\n    consumes:\n      - ref: model_{:05}\n",
            index % 9,
            index * 50
        );
        for source in (index..sources).step_by(exposures) {
            let _ = writeln!(text, "      - source: source_{source:05}");
        }
        text
    })
}

fn write_files(directory: &Path, section: &str, count: usize, one: impl Fn(usize) -> String) -> Result<(), Failure> {
    for first in (0..count).step_by(MODELS_A_FILE) {
        let mut text = format!("{section}:\n");
        for index in first..(first + MODELS_A_FILE).min(count) {
            text.push_str(&one(index));
        }
        fs::write(directory.join(section).join(format!("part_{:05}.yml", first / MODELS_A_FILE)), text)?;
    }
    Ok(())
}

fn source(index: usize, prefix: &str) -> String {
    format!(
        "  - name: source_{index:05}\n    topic: {prefix}source.{index:05}\n    description: Events of system {index}\n    owner: team-{}\n    tags: [raw]\n    columns:\n      - {{name: id, type: STRING, required: true}}\n      - {{name: amount, type: BIGINT}}\n      - {{name: created_at, type: TIMESTAMP(3)}}\n",
        index % 9
    )
}

fn model(index: usize, sources: usize, prefix: &str, sql: bool) -> String {
    let mut text = format!(
        "  - name: model_{index:05}\n    description: Facts of step {index}\n    owner: team-{}\n    tags: [layer{}, perf]\n    topic:\n      name: {}{index:05}\n      partitions: {}\n      config:\n        retention.ms: \"{}\"\n        cleanup.policy: delete\n    columns:\n      - {{name: id, type: STRING, required: true}}\n      - {{name: amount, type: BIGINT, description: In cents}}\n      - {{name: created_at, type: TIMESTAMP(3)}}\n",
        index % 9,
        index % 4,
        model_topics(prefix),
        1 + index % 3,
        86_400_000 + index,
    );
    if index.is_multiple_of(5) {
        text.push_str("    contract:\n      columns:\n        - {name: id, type: STRING}\n        - {name: amount, type: BIGINT}\n");
    }
    if index % 7 == 3 {
        let _ = write!(text, "    access: public\n    group: group-{}\n", index % 5);
    }
    if sql && index % 2 == 1 {
        let input = if index % 4 == 1 {
            format!("{{{{ source(\"source_{:05}\") }}}}", index % sources)
        } else {
            format!("{{{{ ref(\"model_{:05}\") }}}}", index - 1)
        };
        let _ = write!(
            text,
            "    sql: |\n      SELECT id, amount, created_at\n      FROM {input}\n      WHERE amount > {index} AND id IS NOT NULL\n"
        );
    }
    text
}
