//! What the checksums of the ledger cover, so that no table can change without its ledger row.

use serde_json::{Value, json};

use super::contract::{Rule, Version, WRITER_COLUMNS, tables};
use crate::compiler::canonical::{Checksum, to_canonical};

const WRITER_ROLE: [&str; 9] = [
    "LOGIN",
    "NOINHERIT",
    "NOSUPERUSER",
    "NOCREATEDB",
    "NOCREATEROLE",
    "NOREPLICATION",
    "NOBYPASSRLS",
    "NO_MEMBERSHIPS",
    "NOT_OWNER",
];

/// What the checksum of a layout covers.
fn preimage(version: Version) -> Value {
    let tables = tables(version);
    let (mut columns, mut constraints, mut indexes) = (Vec::new(), Vec::new(), Vec::new());
    for table in &tables {
        for column in &table.columns {
            let is_nullable = if column.nullable { "YES" } else { "NO" };
            columns.push((
                table.name,
                json!([table.name, column.name, column.kind.sql(), column.kind.udt(), is_nullable, null]),
            ));
        }
        for constraint in &table.constraints {
            let name = format!("{}{}", table.name, constraint.suffix);
            let key = (table.name, name.clone());
            let mut keyed = |kind: &str, columns: &str| {
                indexes.push((key.clone(), json!([table.name, name, true, kind == "p", columns])));
                json!([table.name, name, kind, columns, null, null, null])
            };
            let value = match constraint.rule {
                Rule::Primary(columns) => keyed("p", columns),
                Rule::Unique(columns) => keyed("u", columns),
                Rule::Foreign { columns, table: other, references } => {
                    json!([table.name, name, "f", columns, other, references, null])
                }
                Rule::Check(expression) => json!([table.name, name, "c", "", null, null, expression]),
            };
            constraints.push((key, value));
        }
    }
    columns.sort_by_key(|(table, _)| *table);
    constraints.sort_by(|(left, _), (right, _)| left.cmp(right));
    indexes.sort_by(|(left, _), (right, _)| left.cmp(right));
    let mut preimage = json!({
        "columns": columns.into_iter().map(|(_, value)| value).collect::<Vec<_>>(),
        "constraints": constraints.into_iter().map(|(_, value)| value).collect::<Vec<_>>(),
        "indexes": indexes.into_iter().map(|(_, value)| value).collect::<Vec<_>>(),
    });
    if version == Version::Two {
        let mut selects: Vec<&str> = tables.iter().map(|table| table.name).collect();
        selects.sort_unstable();
        let selects: Vec<Value> = selects.into_iter().map(|table| json!([table, ["SELECT"]])).collect();
        preimage["writer_schema_privileges"] = json!(["USAGE"]);
        preimage["writer_table_privileges"] = json!(selects);
        preimage["writer_column_privileges"] = json!(WRITER_COLUMNS);
        preimage["writer_role_contract"] = json!(WRITER_ROLE);
        preimage["writer_grantor"] = json!("schema_owner");
        preimage["status_reader_contract"] = json!(["USAGE", "SELECT", "NO_GRANT_OPTION"]);
        preimage["default_acl"] = json!("none");
    }
    preimage
}

/// PGS-008
#[test]
fn the_checksums_of_both_layouts_are_those_of_their_ledger_rows() {
    for (version, length) in [(Version::One, 8877), (Version::Two, 10272)] {
        let canonical = to_canonical(&preimage(version)).unwrap();
        assert_eq!(canonical.len(), length);
        assert_eq!(Checksum::of_bytes(&canonical).to_string(), version.migration_checksum());
    }
}
