//! The tables of the store as constants, of which the DDL, the catalog proof and the checksums of the ledger are all derived.

/// The layouts that a store may have. Only the second serves ordinary commands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Version {
    One,
    Two,
}

impl Version {
    pub const fn number(self) -> i32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }

    pub const fn migration_name(self) -> &'static str {
        match self {
            Self::One => "schema-v1",
            Self::Two => "schema-v2-writer-role",
        }
    }

    /// The checksum of its ledger row; recomputed from the tables by a test of `ledger`.
    pub const fn migration_checksum(self) -> &'static str {
        match self {
            Self::One => "sha256:b80a949d8d23fb1d379e82fab1fea72cab6d58c1de38648663c6105d3ef6cb57",
            Self::Two => "sha256:2d1598933e7a12c26a6ee57eec2dd0dabcca9e14a50493e5c257a28204cb0c51",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    Boolean,
    Uuid,
    Integer,
    BigInt,
    Text,
    Timestamp,
}

impl Type {
    /// The name of the SQL standard, as `format_type` prints it.
    pub const fn sql(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Uuid => "uuid",
            Self::Integer => "integer",
            Self::BigInt => "bigint",
            Self::Text => "text",
            Self::Timestamp => "timestamp with time zone",
        }
    }

    /// The name in `pg_type`.
    pub const fn udt(self) -> &'static str {
        match self {
            Self::Boolean => "bool",
            Self::Uuid => "uuid",
            Self::Integer => "int4",
            Self::BigInt => "int8",
            Self::Text => "text",
            Self::Timestamp => "timestamptz",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub name: &'static str,
    pub kind: Type,
    pub nullable: bool,
}

const fn column(name: &'static str, kind: Type) -> Column {
    Column { name, kind, nullable: false }
}

const fn nullable(name: &'static str, kind: Type) -> Column {
    Column { name, kind, nullable: true }
}

/// Columns are joined by commas, as in the checksum preimage.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    Primary(&'static str),
    Unique(&'static str),
    Foreign { columns: &'static str, table: &'static str, references: &'static str },
    Check(&'static str),
}

#[derive(Clone, Copy, Debug)]
pub struct Constraint {
    /// Follows the table name.
    pub suffix: &'static str,
    pub rule: Rule,
}

const fn rule(suffix: &'static str, rule: Rule) -> Constraint {
    Constraint { suffix, rule }
}

#[derive(Clone, Debug)]
pub struct Table {
    pub name: &'static str,
    pub columns: Vec<Column>,
    pub constraints: Vec<Constraint>,
}

macro_rules! address {
    () => {
        "namespace,project,environment"
    };
    ($rest:literal) => {
        concat!("namespace,project,environment,", $rest)
    };
}

/// The columns of a state address, in every table that has one.
pub const ADDRESS: &str = address!();

pub const METADATA: &str = "store_metadata";
pub const MIGRATIONS: &str = "schema_migrations";
pub const ADDRESSES: &str = "state_addresses";
pub const HISTORY: &str = "operation_history";
pub const CONTROL: &str = "operation_control";
pub const STATES: &str = "state_history";
pub const CURRENT: &str = "current_state";

/// In the order of creation.
pub fn tables(version: Version) -> Vec<Table> {
    use Rule::{Check, Foreign, Primary, Unique};
    use Type::{BigInt, Boolean, Integer, Text, Timestamp, Uuid};
    let addressed = |rest: &[Column]| {
        let mut columns = vec![column("namespace", Text), column("project", Text), column("environment", Text)];
        columns.extend_from_slice(rest);
        columns
    };
    let event = |suffix| {
        rule(
            suffix,
            Foreign {
                columns: address!("operation_id,event_index"),
                table: HISTORY,
                references: address!("operation_id,event_index"),
            },
        )
    };
    let registered = rule("_address_fkey", Foreign { columns: ADDRESS, table: ADDRESSES, references: ADDRESS });
    let (version_check, writer): (_, &[Column]) = match version {
        Version::One => ("schema_version = 1", &[]),
        Version::Two => ("schema_version = 2", &[column("writer_role_name", Text)]),
    };
    let mut metadata = Table {
        name: METADATA,
        columns: vec![
            column("singleton", Boolean),
            column("store_id", Uuid),
            column("schema_version", Integer),
            column("initialized_at", Timestamp),
        ],
        constraints: vec![
            rule("_pkey", Primary("singleton")),
            rule("_store_id_key", Unique("store_id")),
            rule("_singleton_check", Check("singleton")),
            rule("_schema_version_check", Check(version_check)),
        ],
    };
    metadata.columns.extend_from_slice(writer);
    if version == Version::Two {
        metadata.constraints.push(rule("_writer_role_name_check", Check("writer_role_name <> ''::text")));
    }
    vec![
        metadata,
        Table {
            name: MIGRATIONS,
            columns: vec![
                column("schema_version", Integer),
                column("migration_name", Text),
                column("migration_checksum", Text),
                column("applied_at", Timestamp),
            ],
            constraints: vec![
                rule("_pkey", Primary("schema_version")),
                rule("_migration_name_key", Unique("migration_name")),
                rule("_schema_version_check", Check("schema_version > 0")),
                rule("_checksum_check", Check("migration_checksum ~ '^sha256:[0-9a-f]{64}$'")),
            ],
        },
        Table {
            name: ADDRESSES,
            columns: addressed(&[
                column("address_uri", Text),
                column("advisory_lock_key", BigInt),
                column("registered_at", Timestamp),
            ]),
            constraints: vec![
                rule("_pkey", Primary(ADDRESS)),
                rule("_address_uri_key", Unique("address_uri")),
                rule("_advisory_lock_key_key", Unique("advisory_lock_key")),
                rule("_namespace_check", Check("namespace <> '' AND strpos(namespace, '/') = 0")),
                rule("_project_check", Check("project <> '' AND strpos(project, '/') = 0")),
                rule("_environment_check", Check("environment ~ '^[A-Za-z0-9][A-Za-z0-9-]*$'")),
                rule(
                    "_uri_check",
                    Check("address_uri = 'streamt-state://' || namespace || '/' || project || '/' || environment"),
                ),
            ],
        },
        Table {
            name: HISTORY,
            columns: addressed(&[
                column("operation_id", Uuid),
                column("event_index", Integer),
                column("event_kind", Text),
                column("event_json", Text),
                column("control_checksum", Text),
                column("recorded_at", Timestamp),
            ]),
            constraints: vec![
                rule("_pkey", Primary(address!("operation_id,event_index"))),
                registered,
                rule("_event_index_check", Check("event_index >= 0")),
                rule(
                    "_event_kind_check",
                    Check(
                        "event_kind = ANY (ARRAY['intent', 'progress_started', 'progress_checkpoint', 'progress_completed', \
                         'recovery_required', 'operation_resumed', 'cleared_before_mutation', 'succeeded', 'recovery_intent', \
                         'recovered_observed', 'recovered_rolled_back', 'recovered_abandoned_before_mutation'])",
                    ),
                ),
                rule("_checksum_check", Check("control_checksum ~ '^sha256:[0-9a-f]{64}$'")),
                rule("_size_check", Check("octet_length(event_json) <= 10485760")),
            ],
        },
        Table {
            name: CONTROL,
            columns: addressed(&[
                column("revision", BigInt),
                column("status", Text),
                column("control_version", Integer),
                nullable("operation_id", Uuid),
                nullable("event_index", Integer),
                column("control_checksum", Text),
                column("updated_at", Timestamp),
            ]),
            constraints: vec![
                rule("_pkey", Primary(ADDRESS)),
                registered,
                event("_event_fkey"),
                rule("_revision_check", Check("revision >= 0")),
                rule("_status_check", Check("status = ANY (ARRAY['clear', 'in_progress', 'recovery_required'])")),
                rule("_control_version_check", Check("control_version >= 1 AND control_version <= 5")),
                rule(
                    "_position_check",
                    Check(
                        "(status = 'clear') = (operation_id IS NULL) AND (operation_id IS NULL) = (event_index IS NULL)",
                    ),
                ),
                rule("_checksum_check", Check("control_checksum ~ '^sha256:[0-9a-f]{64}$'")),
            ],
        },
        Table {
            name: STATES,
            columns: addressed(&[
                column("state_serial", BigInt),
                column("state_checksum", Text),
                column("change_json", Text),
                column("operation_id", Uuid),
                column("event_index", Integer),
                column("recorded_at", Timestamp),
            ]),
            constraints: vec![
                rule("_pkey", Primary(address!("state_serial"))),
                rule("_operation_id_key", Unique(address!("operation_id"))),
                event("_event_fkey"),
                rule("_serial_check", Check("state_serial >= 1")),
                rule("_checksum_check", Check("state_checksum ~ '^sha256:[0-9a-f]{64}$'")),
                rule("_size_check", Check("octet_length(change_json) <= 10485760")),
            ],
        },
        Table {
            name: CURRENT,
            columns: addressed(&[
                column("state_serial", BigInt),
                column("state_checksum", Text),
                column("state_json", Text),
                column("updated_at", Timestamp),
            ]),
            constraints: vec![
                rule("_pkey", Primary(ADDRESS)),
                rule(
                    "_history_fkey",
                    Foreign { columns: address!("state_serial"), table: STATES, references: address!("state_serial") },
                ),
                rule("_checksum_check", Check("state_checksum ~ '^sha256:[0-9a-f]{64}$'")),
                rule("_size_check", Check("octet_length(state_json) <= 10485760")),
            ],
        },
    ]
}

/// What the writer may do to columns beside reading: table, verb, columns.
pub const WRITER_COLUMNS: [(&str, &str, &[&str]); 5] = [
    (
        HISTORY,
        "INSERT",
        &[
            "namespace",
            "project",
            "environment",
            "operation_id",
            "event_index",
            "event_kind",
            "event_json",
            "control_checksum",
            "recorded_at",
        ],
    ),
    (
        CONTROL,
        "UPDATE",
        &["revision", "status", "control_version", "operation_id", "event_index", "control_checksum", "updated_at"],
    ),
    (
        STATES,
        "INSERT",
        &[
            "namespace",
            "project",
            "environment",
            "state_serial",
            "state_checksum",
            "change_json",
            "operation_id",
            "event_index",
            "recorded_at",
        ],
    ),
    (
        CURRENT,
        "INSERT",
        &["namespace", "project", "environment", "state_serial", "state_checksum", "state_json", "updated_at"],
    ),
    (CURRENT, "UPDATE", &["state_serial", "state_checksum", "state_json", "updated_at"]),
];

/// A quoted identifier.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The statements that make a layout. `schema` and `writer` are quoted identifiers, or their placeholders in a printed script.
#[derive(Clone, Debug)]
pub struct Ddl {
    pub schema: String,
}

impl Ddl {
    pub fn table(&self, name: &str) -> String {
        format!("{}.{name}", self.schema)
    }

    /// An empty schema of version 1 without its rows.
    pub fn create(&self) -> Vec<String> {
        let tables = tables(Version::One);
        let mut statements = vec![format!("CREATE SCHEMA {}", self.schema)];
        statements.extend(tables.iter().map(|table| self.create_table(table)));
        statements.push(format!("REVOKE ALL ON SCHEMA {} FROM PUBLIC", self.schema));
        statements
            .extend(tables.iter().map(|table| format!("REVOKE ALL ON TABLE {} FROM PUBLIC", self.table(table.name))));
        statements
    }

    fn create_table(&self, table: &Table) -> String {
        let columns = table.columns.iter().map(|column| {
            let null = if column.nullable { "" } else { " NOT NULL" };
            format!("{} {}{null}", column.name, column.kind.sql())
        });
        let constraints = table.constraints.iter().map(|constraint| {
            let text = match constraint.rule {
                Rule::Primary(columns) => format!("PRIMARY KEY ({})", spaced(columns)),
                Rule::Unique(columns) => format!("UNIQUE ({})", spaced(columns)),
                Rule::Foreign { columns, table, references } => format!(
                    "FOREIGN KEY ({}) REFERENCES {} ({}) ON DELETE RESTRICT",
                    spaced(columns),
                    self.table(table),
                    spaced(references)
                ),
                Rule::Check(expression) => format!("CHECK ({expression})"),
            };
            format!("CONSTRAINT {}{} {text}", table.name, constraint.suffix)
        });
        let lines: Vec<String> = columns.chain(constraints).collect();
        format!("CREATE TABLE {} (\n  {}\n)", self.table(table.name), lines.join(",\n  "))
    }

    /// From version 1 to version 2, up to the ledger row; the two with parameters are `UPDATE` ($1 = writer, $2 = store id) and
    /// `INSERT` ($1 = checksum, $2 = instant).
    pub fn upgrade(&self, writer: &str) -> Vec<String> {
        let metadata = self.table(METADATA);
        let mut statements = vec![
            format!("ALTER TABLE {metadata} DROP CONSTRAINT store_metadata_schema_version_check"),
            format!("ALTER TABLE {metadata} ADD COLUMN writer_role_name text"),
            format!(
                "UPDATE {metadata} SET schema_version = 2, writer_role_name = $1 WHERE singleton AND store_id = $2 AND schema_version = 1"
            ),
            format!(
                "ALTER TABLE {metadata} ALTER COLUMN writer_role_name SET NOT NULL, \
                 ADD CONSTRAINT store_metadata_schema_version_check CHECK (schema_version = 2), \
                 ADD CONSTRAINT store_metadata_writer_role_name_check CHECK (writer_role_name <> '')"
            ),
            format!(
                "INSERT INTO {} VALUES (2, '{}', $1, $2::text::timestamptz)",
                self.table(MIGRATIONS),
                Version::Two.migration_name()
            ),
        ];
        statements.extend(self.grants(writer));
        statements
    }

    /// The exact rights of the writer role, and nothing for anybody else.
    pub fn grants(&self, writer: &str) -> Vec<String> {
        let mut statements = vec![
            format!("REVOKE ALL ON SCHEMA {} FROM PUBLIC, {writer}", self.schema),
            format!("REVOKE ALL ON ALL TABLES IN SCHEMA {} FROM PUBLIC, {writer}", self.schema),
            format!("GRANT USAGE ON SCHEMA {} TO {writer}", self.schema),
        ];
        let all: Vec<String> = tables(Version::Two).iter().map(|table| self.table(table.name)).collect();
        statements.push(format!("GRANT SELECT ON {} TO {writer}", all.join(", ")));
        statements.extend(WRITER_COLUMNS.iter().map(|(table, verb, columns)| {
            format!("GRANT {verb} ({}) ON {} TO {writer}", columns.join(", "), self.table(table))
        }));
        statements
    }
}

fn spaced(columns: &str) -> String {
    columns.replace(',', ", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_quoted_whatever_it_holds() {
        assert_eq!(quoted("a\"; DROP"), "\"a\"\"; DROP\"");
    }
}
