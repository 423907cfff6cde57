//! The proof that a schema is exactly the store's, and that its rights are exactly those of the contract. It reads the catalog
//! of the server inside a transaction of its caller, compares it with the constant tables, and trusts nothing by name alone.

use std::collections::BTreeSet;

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::classify::Trouble;
use super::contract::{METADATA, MIGRATIONS, Rule, Table, Version, WRITER_COLUMNS, quoted, tables};
use crate::state::error::StateError;

/// What a proved store says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proved {
    pub version: Version,
    pub store_id: Uuid,
    /// Version 2 alone has one.
    pub writer: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Defect {
    /// No schema, or an empty one.
    Uninitialized,
    /// What stands in the schema is not the store.
    Catalog(String),
    /// Roles and rights.
    Authority(&'static str),
    Trouble(Trouble),
}

impl From<Trouble> for Defect {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

impl From<tokio_postgres::Error> for Defect {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Trouble(error.into())
    }
}

/// Who asks: an altered catalog is the business of an administrator, and for everybody else a store that cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asker {
    Ordinary,
    Administrator,
}

impl Defect {
    /// PGS-011
    pub fn error(self, asker: Asker) -> StateError {
        const EXACT: &str =
            "the schema must hold the store's own objects and rights, and nothing else; undo what was changed in it";
        match (self, asker) {
            (Self::Uninitialized, _) => StateError::unavailable("its store is not initialized")
                .suggest("run `streamt state init` with the owner's connection"),
            (Self::Catalog(detail), Asker::Ordinary) => StateError::unavailable(detail).suggest(EXACT),
            (Self::Catalog(detail), Asker::Administrator) => StateError::invalid(detail).suggest(EXACT),
            (Self::Authority(detail), _) => StateError::unavailable(detail)
                .suggest("compare roles and grants with `streamt state init --writer-role NAME --print-sql`"),
            (Self::Trouble(Trouble::Forbidden), Asker::Ordinary) => Trouble::Forbidden.unavailable().suggest(
                "look with `streamt state status`, which uses the owner's connection: schema version 1 grants no writer anything; \
                 in version 2, connect as the role that `state init` named",
            ),
            (Self::Trouble(trouble), _) => trouble.unavailable(),
        }
    }
}

fn differs(table: &str) -> Defect {
    Defect::Catalog(format!("its catalog is not the store's: '{table}' differs"))
}

/// Proves relations, columns, constraints, indexes, ledger and rights. The caller holds a repeatable-read transaction.
pub async fn prove(client: &Client, schema: &str) -> Result<Proved, Defect> {
    relations(client, schema).await?;
    foreign_objects(client, schema).await?;
    let version = version(client, schema).await?;
    let tables = tables(version);
    columns(client, schema, &tables).await?;
    constraints(client, schema, &tables).await?;
    indexes(client, schema, &tables).await?;
    let proved = rows(client, schema, version).await?;
    rights(client, schema, &proved, &tables).await?;
    Ok(proved)
}

async fn query(client: &Client, schema: &str, sql: &str) -> Result<Vec<Row>, Defect> {
    Ok(client.query_typed(sql, &[(&schema, Type::TEXT)]).await?)
}

async fn relations(client: &Client, schema: &str) -> Result<(), Defect> {
    let rows = query(
        client,
        schema,
        "SELECT c.relname::text, c.relkind = 'r' AND c.relpersistence = 'p' AND NOT c.relispartition \
         AND NOT c.relrowsecurity AND NOT c.relforcerowsecurity AND c.relowner = n.nspowner \
         AND NOT EXISTS (SELECT 1 FROM pg_inherits i WHERE c.oid IN (i.inhrelid, i.inhparent)) \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname = $1 AND c.relkind <> 'i' ORDER BY 1",
    )
    .await?;
    if rows.is_empty() {
        return Err(Defect::Uninitialized);
    }
    let mut found = BTreeSet::new();
    let expected: BTreeSet<&str> = tables(Version::Two).iter().map(|table| table.name).collect();
    for row in rows {
        let (name, plain): (String, bool) = (row.try_get(0)?, row.try_get(1)?);
        match expected.get(name.as_str()) {
            None => return Err(another_object()),
            Some(table) if !plain => return Err(differs(table)),
            Some(table) => found.insert(*table),
        };
    }
    match expected.difference(&found).next() {
        Some(missing) => Err(Defect::Catalog(format!("its catalog is not the store's: '{missing}' is missing"))),
        None => Ok(()),
    }
}

fn another_object() -> Defect {
    Defect::Catalog("its catalog is not the store's: the schema holds another object".to_owned())
}

async fn foreign_objects(client: &Client, schema: &str) -> Result<(), Defect> {
    let rows = query(
        client,
        schema,
        "WITH s AS (SELECT oid FROM pg_namespace WHERE nspname = $1), r AS (SELECT c.oid FROM pg_class c, s WHERE c.relnamespace = s.oid) \
         SELECT EXISTS (SELECT 1 FROM pg_proc, s WHERE pronamespace = s.oid) \
         OR EXISTS (SELECT 1 FROM pg_type t, s WHERE t.typnamespace = s.oid AND t.typrelid = 0 \
           AND NOT EXISTS (SELECT 1 FROM pg_type e WHERE e.oid = t.typelem AND e.typrelid <> 0)) \
         OR EXISTS (SELECT 1 FROM pg_collation, s WHERE collnamespace = s.oid) \
         OR EXISTS (SELECT 1 FROM pg_conversion, s WHERE connamespace = s.oid) \
         OR EXISTS (SELECT 1 FROM pg_operator, s WHERE oprnamespace = s.oid) \
         OR EXISTS (SELECT 1 FROM pg_opclass, s WHERE opcnamespace = s.oid) \
         OR EXISTS (SELECT 1 FROM pg_opfamily, s WHERE opfnamespace = s.oid) \
         OR EXISTS (SELECT 1 FROM pg_ts_parser, s WHERE prsnamespace = s.oid) \
         OR EXISTS (SELECT 1 FROM pg_ts_dict, s WHERE dictnamespace = s.oid) \
         OR EXISTS (SELECT 1 FROM pg_ts_template, s WHERE tmplnamespace = s.oid) \
         OR EXISTS (SELECT 1 FROM pg_ts_config, s WHERE cfgnamespace = s.oid) \
         OR EXISTS (SELECT 1 FROM pg_statistic_ext, s WHERE stxnamespace = s.oid) \
         OR EXISTS (SELECT 1 FROM pg_trigger t JOIN r ON r.oid = t.tgrelid WHERE NOT t.tgisinternal OR t.tgenabled <> 'O') \
         OR EXISTS (SELECT 1 FROM pg_rewrite w JOIN r ON r.oid = w.ev_class) \
         OR EXISTS (SELECT 1 FROM pg_policy p JOIN r ON r.oid = p.polrelid)",
    )
    .await?;
    match rows.first().map(|row| row.try_get::<_, bool>(0)).transpose()? {
        Some(false) => Ok(()),
        Some(true) | None => Err(another_object()),
    }
}

async fn version(client: &Client, schema: &str) -> Result<Version, Defect> {
    let rows = query(
        client,
        schema,
        "SELECT a.attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
         JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'store_metadata' \
         AND a.attname = 'writer_role_name' AND a.attnum > 0 AND NOT a.attisdropped",
    )
    .await?;
    Ok(if rows.is_empty() { Version::One } else { Version::Two })
}

/// Compares rows, whose first column is the table, with what each table should have. Order counts inside a table.
fn compare(rows: &[Row], mut expected: Vec<(&'static str, String)>, ordered: bool) -> Result<(), Defect> {
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        let (table, line): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        found.push((table, line));
    }
    if !ordered {
        expected.sort();
        found.sort();
    } else {
        expected.sort_by_key(|(table, _)| *table);
        found.sort_by(|(left, _), (right, _)| left.cmp(right));
    }
    for table in tables(Version::Two).iter().map(|table| table.name) {
        let ours = expected.iter().filter(|(name, _)| *name == table).map(|(_, line)| line);
        let theirs = found.iter().filter(|(name, _)| name == table).map(|(_, line)| line);
        if !ours.eq(theirs) {
            return Err(differs(table));
        }
    }
    if expected.len() == found.len() { Ok(()) } else { Err(another_object()) }
}

async fn columns(client: &Client, schema: &str, tables: &[Table]) -> Result<(), Defect> {
    let rows = query(
        client,
        schema,
        "SELECT c.relname::text, concat_ws('|', a.attname, format_type(a.atttypid, a.atttypmod), t.typname, a.attnotnull, \
         tn.nspname = 'pg_catalog' AND NOT a.atthasdef AND a.attidentity = '' AND a.attgenerated = '' \
         AND a.attcollation = t.typcollation AND a.attndims = 0) \
         FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
         JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace tn ON tn.oid = t.typnamespace \
         WHERE n.nspname = $1 AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.relname, a.attnum",
    )
    .await?;
    let flag = |set: bool| if set { "t" } else { "f" };
    let expected = tables.iter().flat_map(|table| {
        table.columns.iter().map(move |column| {
            let line =
                format!("{}|{}|{}|{}|t", column.name, column.kind.sql(), column.kind.udt(), flag(!column.nullable));
            (table.name, line)
        })
    });
    compare(&rows, expected.collect(), true)
}

/// Blanks, casts to text and parentheses are how versions of the server differ in printing an expression.
fn normal(expression: &str) -> String {
    let text: String = expression.chars().filter(|c| !c.is_whitespace()).collect();
    text.replace("::text[]", "").replace("::text", "").chars().filter(|c| !matches!(c, '(' | ')')).collect()
}

async fn constraints(client: &Client, schema: &str, tables: &[Table]) -> Result<(), Defect> {
    let rows = query(
        client,
        schema,
        "SELECT c.relname::text, x.conname::text, x.contype::text, \
         (SELECT string_agg(a.attname::text, ',' ORDER BY k.place) FROM unnest(x.conkey) WITH ORDINALITY k(number, place) \
           JOIN pg_attribute a ON a.attrelid = x.conrelid AND a.attnum = k.number), \
         (SELECT f.relname::text FROM pg_class f WHERE f.oid = x.confrelid AND f.relnamespace = c.relnamespace), \
         (SELECT string_agg(a.attname::text, ',' ORDER BY k.place) FROM unnest(x.confkey) WITH ORDINALITY k(number, place) \
           JOIN pg_attribute a ON a.attrelid = x.confrelid AND a.attnum = k.number), \
         pg_get_expr(x.conbin, x.conrelid), \
         NOT x.condeferrable AND NOT x.condeferred AND x.convalidated AND x.conislocal AND x.coninhcount = 0 \
           AND coalesce(to_jsonb(x)->>'conenforced', 'true') = 'true' \
           AND (x.contype <> 'f' OR (x.confmatchtype = 's' AND x.confdeltype = 'r' AND x.confupdtype = 'a')) \
           AND (x.contype <> 'c' OR NOT x.connoinherit) \
         FROM pg_constraint x JOIN pg_class c ON c.oid = x.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname = $1 AND x.contype <> 'n'",
    )
    .await?;
    let mut found = BTreeSet::new();
    for row in &rows {
        let text = |index: usize| row.try_get::<_, Option<String>>(index).map(Option::unwrap_or_default);
        let (table, name, kind) = (text(0)?, text(1)?, text(2)?);
        let plain: bool = row.try_get(7)?;
        let line = match kind.as_str() {
            "c" => format!("c|{}", normal(&text(6)?)),
            "f" => format!("f|{}|{}|{}", text(3)?, text(4)?, text(5)?),
            _ => format!("{kind}|{}", text(3)?),
        };
        found.insert((table, name, line, plain));
    }
    let mut expected = BTreeSet::new();
    for table in tables {
        for constraint in &table.constraints {
            let line = match constraint.rule {
                Rule::Primary(columns) => format!("p|{columns}"),
                Rule::Unique(columns) => format!("u|{columns}"),
                Rule::Foreign { columns, table, references } => format!("f|{columns}|{table}|{references}"),
                Rule::Check(expression) => format!("c|{}", normal(expression)),
            };
            expected.insert((table.name.to_owned(), format!("{}{}", table.name, constraint.suffix), line, true));
        }
    }
    let odd = found.symmetric_difference(&expected).next();
    match odd.and_then(|(odd, ..)| tables.iter().find(|table| table.name == odd)) {
        Some(table) => Err(differs(table.name)),
        None if odd.is_some() => Err(another_object()),
        None => Ok(()),
    }
}

async fn indexes(client: &Client, schema: &str, tables: &[Table]) -> Result<(), Defect> {
    let rows = query(
        client,
        schema,
        "SELECT c.relname::text, concat_ws('|', x.relname, i.indisprimary, \
         (SELECT string_agg(a.attname::text, ',' ORDER BY k.place) FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(number, place) \
           JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number), \
         i.indisunique AND i.indisvalid AND i.indisready AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL \
           AND i.indnatts = i.indnkeyatts AND NOT i.indisexclusion AND am.amname = 'btree' \
           AND coalesce(to_jsonb(i)->>'indnullsnotdistinct', 'false') = 'false' \
           AND NOT EXISTS (SELECT 1 FROM unnest(i.indoption::int2[]) o(flags) WHERE o.flags <> 0) \
           AND NOT EXISTS (SELECT 1 FROM unnest(i.indclass::oid[]) k(class) JOIN pg_opclass p ON p.oid = k.class WHERE NOT p.opcdefault)) \
         FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_class c ON c.oid = i.indrelid \
         JOIN pg_namespace n ON n.oid = x.relnamespace JOIN pg_am am ON am.oid = x.relam WHERE n.nspname = $1",
    )
    .await?;
    let expected = tables.iter().flat_map(|table| {
        table.constraints.iter().filter_map(move |constraint| {
            let (primary, columns) = match constraint.rule {
                Rule::Primary(columns) => ("t", columns),
                Rule::Unique(columns) => ("f", columns),
                Rule::Foreign { .. } | Rule::Check(_) => return None,
            };
            Some((table.name, format!("{}{}|{primary}|{columns}|t", table.name, constraint.suffix)))
        })
    });
    compare(&rows, expected.collect(), false)
}

/// The metadata row and the ledger.
async fn rows(client: &Client, schema: &str, version: Version) -> Result<Proved, Defect> {
    let schema = quoted(schema);
    let metadata = client
        .query_typed(
            &format!(
                "SELECT m.store_id, m.schema_version, m.singleton, to_jsonb(m)->>'writer_role_name' FROM {schema}.{METADATA} m LIMIT 2"
            ),
            &[],
        )
        .await?;
    let [row] = metadata.as_slice() else { return Err(differs(METADATA)) };
    let (store_id, number, singleton): (Uuid, i32, bool) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let writer: Option<String> = row.try_get(3)?;
    if number != version.number() || !singleton || writer.is_some() != (version == Version::Two) {
        return Err(differs(METADATA));
    }
    let ledger = client
        .query_typed(
            &format!(
                "SELECT l.schema_version, l.migration_name, l.migration_checksum FROM {schema}.{MIGRATIONS} l ORDER BY 1 LIMIT 3"
            ),
            &[],
        )
        .await?;
    let expected: &[Version] = match version {
        Version::One => &[Version::One],
        Version::Two => &[Version::One, Version::Two],
    };
    let mut same = ledger.len() == expected.len();
    for (row, version) in ledger.iter().zip(expected) {
        let (number, name, checksum): (i32, String, String) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        same &=
            number == version.number() && name == version.migration_name() && checksum == version.migration_checksum();
    }
    if same { Ok(Proved { version, store_id, writer }) } else { Err(differs(MIGRATIONS)) }
}

/// One entry of an access list.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Grant {
    /// Empty for the schema itself.
    table: String,
    /// Empty for a whole table.
    column: String,
    privilege: String,
}

/// PGS-009: the writer has exactly its rights, others may read at most, PUBLIC has none, and only the owner grants.
async fn rights(client: &Client, schema: &str, proved: &Proved, tables: &[Table]) -> Result<(), Defect> {
    const BROAD: Defect = Defect::Authority("a role has more rights on its store than the contract gives");
    let rows = query(
        client,
        schema,
        "WITH s AS (SELECT * FROM pg_namespace WHERE nspname = $1), acl AS ( \
           SELECT ''::text AS relation, ''::text AS attribute, a.* FROM s, aclexplode(s.nspacl) a \
           UNION ALL SELECT c.relname::text, '', a.* FROM s JOIN pg_class c ON c.relnamespace = s.oid, aclexplode(c.relacl) a \
           UNION ALL SELECT c.relname::text, t.attname::text, a.* FROM s JOIN pg_class c ON c.relnamespace = s.oid \
             JOIN pg_attribute t ON t.attrelid = c.oid, aclexplode(t.attacl) a) \
         SELECT acl.relation, acl.attribute, acl.privilege_type, acl.is_grantable, acl.grantor = s.nspowner, \
           acl.grantee = s.nspowner, acl.grantee = 0, \
           (SELECT r.rolname::text FROM pg_roles r WHERE r.oid = acl.grantee) FROM acl, s",
    )
    .await?;
    let mut writer = BTreeSet::new();
    for row in &rows {
        let grant = Grant { table: row.try_get(0)?, column: row.try_get(1)?, privilege: row.try_get(2)? };
        let (grantable, by_owner, to_owner, to_all): (bool, bool, bool, bool) =
            (row.try_get(3)?, row.try_get(4)?, row.try_get(5)?, row.try_get(6)?);
        let grantee: Option<String> = row.try_get(7)?;
        if !by_owner {
            return Err(Defect::Authority("a right on its store was granted by another role than the owner"));
        }
        if to_owner {
            continue;
        }
        if to_all || grantable {
            return Err(BROAD);
        }
        if grantee.is_some() && grantee == proved.writer {
            writer.insert(grant);
            continue;
        }
        let reads = match (grant.table.as_str(), grant.column.as_str()) {
            ("", _) => grant.privilege == "USAGE",
            (_, "") => grant.privilege == "SELECT",
            (_, _) => false,
        };
        if !reads {
            return Err(BROAD);
        }
    }
    let Some(role) = &proved.writer else { return Ok(()) };
    let grant = |table: &str, column: &str, privilege: &str| Grant {
        table: table.to_owned(),
        column: column.to_owned(),
        privilege: privilege.to_owned(),
    };
    let mut expected = BTreeSet::from([grant("", "", "USAGE")]);
    expected.extend(tables.iter().map(|table| grant(table.name, "", "SELECT")));
    for (table, privilege, columns) in WRITER_COLUMNS {
        expected.extend(columns.iter().map(|column| grant(table, column, privilege)));
    }
    if !writer.is_subset(&expected) {
        return Err(BROAD);
    }
    if writer != expected {
        return Err(Defect::Authority("the writer role lacks a right on its store that the contract gives"));
    }
    writer_role(client, schema, role).await
}

/// What the writer role is and is not, beside its rights on the store.
pub async fn writer_role(client: &Client, schema: &str, role: &str) -> Result<(), Defect> {
    let rows = client
        .query_typed(
            "SELECT r.rolcanlogin AND NOT r.rolinherit AND NOT r.rolsuper AND NOT r.rolcreatedb AND NOT r.rolcreaterole \
             AND NOT r.rolreplication AND NOT r.rolbypassrls, r.oid = n.nspowner, \
             EXISTS (SELECT 1 FROM pg_auth_members m WHERE r.oid IN (m.member, m.roleid)), \
             EXISTS (SELECT 1 FROM pg_default_acl d WHERE d.defaclrole IN (r.oid, n.nspowner) AND d.defaclobjtype IN ('r', 'S') \
               AND d.defaclnamespace IN (0, n.oid)) \
             FROM pg_roles r, pg_namespace n WHERE n.nspname = $1 AND r.rolname = $2",
            &[(&schema, Type::TEXT), (&role, Type::TEXT)],
        )
        .await?;
    let [row] = rows.as_slice() else {
        return Err(Defect::Authority(
            "the writer role does not exist: create it first, LOGIN NOINHERIT and nothing more",
        ));
    };
    let (plain, owner, member, defaults): (bool, bool, bool, bool) =
        (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
    if owner {
        return Err(Defect::Authority("the writer role owns the store"));
    }
    if !plain {
        return Err(Defect::Authority(
            "the writer role must be LOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS",
        ));
    }
    if member {
        return Err(Defect::Authority(
            "the writer role is a member of another role, or has members; PostgreSQL 16 and newer make whoever creates a role a member \
             of it, unless a superuser creates it",
        ));
    }
    if defaults {
        return Err(Defect::Authority("default privileges are set for the owner or the writer role"));
    }
    Ok(())
}

/// PGS-007, PGS-012: the session is the writer of a version-2 store, and nobody else.
pub async fn prove_writer(client: &Client, proved: &Proved) -> Result<(), Defect> {
    let Some(writer) = &proved.writer else {
        return Err(Defect::Authority("its store has schema version 1, which serves administration only"));
    };
    let row = client.query_typed_one("SELECT session_user::text, current_user::text", &[]).await?;
    let (session, current): (String, String) = (row.try_get(0)?, row.try_get(1)?);
    if session != *writer || current != *writer {
        return Err(Defect::Authority("the connection is not the store's writer role"));
    }
    Ok(())
}
