//! The text of a job as single statements: cut, checked, and with the secrets where `***` stands for them.

use zeroize::Zeroizing;

use crate::compiler::artifact::FlinkJobArtifact;
use crate::project::model::{FlinkCluster, KafkaConnectorFlavour, KafkaRuntime, SaslMechanism, SchemaRegistryRuntime};
use crate::project::secret::Secret;
use crate::providers::ProviderFailure;
use crate::sql::{Token, TokenKind, tokenize};

/// What the compiler writes for a secret value of an option.
const MASKED: &str = "'***'";

const JAAS: &str = "properties.sasl.jaas.config";
const KEY_PASSWORD: &str = "properties.ssl.key.password";
const USER_INFO: &str = "avro-confluent.basic-auth.user-info";

/// What belongs in place of `***`, by the key of a table's option, and every secret that Flink might repeat.
#[derive(Clone, Default)]
pub(super) struct Fillings {
    jaas: Option<Secret>,
    key_password: Option<Secret>,
    user_info: Option<Secret>,
    others: Vec<Secret>,
}

impl Fillings {
    pub fn new(cluster: &FlinkCluster, kafka: Option<&KafkaRuntime>, registry: Option<&SchemaRegistryRuntime>) -> Self {
        let login = registry.and_then(|registry| {
            let (name, password) = (registry.auth.username.as_ref()?, registry.auth.password.as_ref()?);
            Some(Secret::new(format!("{name}:{}", password.expose())))
        });
        let jaas = kafka.and_then(|kafka| jaas(kafka, cluster.kafka_connector));
        let mut others: Vec<Secret> = Vec::new();
        let mut hide = |secret: Option<&Secret>| {
            if let Some(secret) = secret {
                for text in [secret.expose().to_owned(), in_jaas(secret.expose()), in_sql(secret.expose())] {
                    others.push(Secret::new(text));
                }
            }
        };
        hide(jaas.as_ref());
        hide(login.as_ref());
        hide(cluster.api_key.as_ref());
        hide(cluster.api_secret.as_ref());
        hide(cluster.auth.password.as_ref());
        if let Some(kafka) = kafka {
            hide(kafka.sasl_password.as_ref());
            hide(kafka.sasl_oauth_client_secret.as_ref());
            hide(kafka.tls.key_password.as_ref());
        }
        if let Some(registry) = registry {
            hide(registry.auth.password.as_ref());
            hide(registry.token.as_ref());
        }
        let key_password = kafka.and_then(|kafka| kafka.tls.key_password.clone());
        Self { jaas, key_password, user_info: login, others }
    }

    pub fn secrets(&self) -> Vec<&Secret> {
        self.others.iter().collect()
    }

    fn of(&self, key: &str) -> Option<Result<&Secret, ProviderFailure>> {
        let (value, field) = match key.strip_prefix("value.").unwrap_or(key) {
            JAAS => (&self.jaas, "the SASL login of runtime.kafka"),
            KEY_PASSWORD => (&self.key_password, "ssl_key_password of runtime.kafka"),
            USER_INFO => (&self.user_info, "the login of runtime.schema_registry"),
            _other => return None,
        };
        Some(value.as_ref().ok_or(ProviderFailure::Config { field }))
    }
}

fn jaas(kafka: &KafkaRuntime, flavour: KafkaConnectorFlavour) -> Option<Secret> {
    let prefix = match flavour {
        KafkaConnectorFlavour::Sql => "org.apache.flink.kafka.shaded.",
        KafkaConnectorFlavour::Plain => "",
    };
    let login = |module: &str, options: &[(&str, &str)]| {
        let mut text = format!("{prefix}org.apache.kafka.common.security.{module} required");
        for (key, value) in options {
            text.push_str(&format!(" {key}=\"{}\"", in_jaas(value)));
        }
        text.push(';');
        Secret::new(text)
    };
    let named = |module: &str| {
        let (user, password) = (kafka.sasl_username.as_ref()?, kafka.sasl_password.as_ref()?);
        Some(login(module, &[("username", user), ("password", password.expose())]))
    };
    match kafka.sasl_mechanism? {
        SaslMechanism::Plain => named("plain.PlainLoginModule"),
        SaslMechanism::ScramSha256 | SaslMechanism::ScramSha512 => named("scram.ScramLoginModule"),
        SaslMechanism::OAuthBearer => {
            let (id, secret) = (kafka.sasl_oauth_client_id.as_ref()?, kafka.sasl_oauth_client_secret.as_ref()?);
            let mut options = vec![("clientId", id.as_str()), ("clientSecret", secret.expose())];
            options.extend(kafka.sasl_oauth_scope.as_deref().map(|scope| ("scope", scope)));
            Some(login("oauthbearer.OAuthBearerLoginModule", &options))
        }
        SaslMechanism::AwsMskIam => None,
    }
}

fn in_jaas(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"")
}

fn in_sql(value: &str) -> String {
    value.replace('\'', "''")
}

/// A job's text, ready to be sent: what prepares a session, in order, and the one statement that makes the job.
pub(super) struct Statements {
    pub prepare: Vec<Zeroizing<String>>,
    pub insert: Zeroizing<String>,
}

impl Statements {
    pub fn of(artifact: &FlinkJobArtifact, fillings: &Fillings) -> Result<Self, ProviderFailure> {
        const SHAPE: ProviderFailure =
            ProviderFailure::Unsupported { what: "a job of anything but SET, CREATE and one INSERT" };
        let sql = artifact.sql.as_str();
        let tokens = tokenize(sql).map_err(|_| SHAPE)?;
        let mut prepare = Vec::new();
        let mut insert = None;
        for piece in tokens.split(|token| token.is_symbol(sql, ";")) {
            let piece: Vec<Token> = piece.iter().filter(|token| !token.is_trivia()).copied().collect();
            let Some(first) = piece.first() else { continue };
            if insert.is_some() {
                return Err(SHAPE);
            }
            if first.is_word(sql, "INSERT") {
                insert = Some(filled(sql, &piece, None)?);
            } else if first.is_word(sql, "SET") {
                if waits_for_the_job(sql, &piece) {
                    return Err(ProviderFailure::Unsupported {
                        what: "table.dml-sync: the submission would last as long as the job",
                    });
                }
                prepare.push(filled(sql, &piece, None)?);
            } else if first.is_word(sql, "CREATE") {
                prepare.push(filled(sql, &piece, Some(fillings))?);
            } else {
                return Err(SHAPE);
            }
        }
        Ok(Self { prepare, insert: insert.ok_or(SHAPE)? })
    }
}

fn waits_for_the_job(sql: &str, piece: &[Token]) -> bool {
    let text = |token: &Token| token.span.of(sql).trim_matches('\'').to_ascii_lowercase();
    piece.iter().any(|token| text(token) == "table.dml-sync") && piece.last().is_some_and(|token| text(token) == "true")
}

/// The piece from its first to its last token, comments inside it kept, with every masked option filled in.
fn filled(sql: &str, piece: &[Token], fillings: Option<&Fillings>) -> Result<Zeroizing<String>, ProviderFailure> {
    let (Some(first), Some(last)) = (piece.first(), piece.last()) else { return Ok(Zeroizing::default()) };
    let mut text = Zeroizing::new(String::with_capacity(last.span.end - first.span.start));
    let mut done = first.span.start;
    for option in piece.windows(3) {
        let [key, equals, value] = option else { continue };
        let is_option = key.kind == TokenKind::String && equals.is_symbol(sql, "=") && value.span.of(sql) == MASKED;
        let Some(fillings) = fillings.filter(|_| is_option) else { continue };
        let Some(secret) = fillings.of(key.span.of(sql).trim_matches('\'')) else { continue };
        text.push_str(&sql[done..value.span.start]);
        text.push('\'');
        text.push_str(&Zeroizing::new(in_sql(secret?.expose())));
        text.push('\'');
        done = value.span.end;
    }
    text.push_str(&sql[done..last.span.end]);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{artifact, cluster};
    use super::*;
    use crate::project::model::{BasicAuth, Tls};

    fn secured() -> (KafkaRuntime, SchemaRegistryRuntime) {
        let kafka = KafkaRuntime {
            sasl_mechanism: Some(SaslMechanism::ScramSha512),
            sasl_username: Some("alice".into()),
            sasl_password: Some(Secret::new("p\"w\\d'x")),
            ..KafkaRuntime::plain("broker:9092")
        };
        let auth = BasicAuth { username: Some("reader".into()), password: Some(Secret::new("registry-pw")) };
        (kafka, SchemaRegistryRuntime { url: "http://registry".into(), auth, token: None, tls: Tls::default() })
    }

    fn cut(sql: &str) -> Result<(Vec<String>, String), ProviderFailure> {
        let (kafka, registry) = secured();
        let fillings = Fillings::new(&cluster(None, None), Some(&kafka), Some(&registry));
        let statements = Statements::of(&artifact(sql), &fillings)?;
        Ok((statements.prepare.iter().map(|text| text.to_string()).collect(), statements.insert.to_string()))
    }

    #[test]
    fn a_text_is_cut_where_a_statement_ends_and_nowhere_else() {
        let sql = "-- a; comment\nSET 'a' = 'b;''c';;\n/* ; */ CREATE TABLE `x;y` (a INT COMMENT 'd;') WITH ('k' = 'v;');\n\
                   INSERT INTO s SELECT ';' AS a -- tail;\nFROM `x;y`;\n-- end";
        let (prepare, insert) = cut(sql).expect("statements");
        let expected = ["SET 'a' = 'b;''c'", "CREATE TABLE `x;y` (a INT COMMENT 'd;') WITH ('k' = 'v;')"];
        assert_eq!(prepare, expected);
        assert_eq!(insert, "INSERT INTO s SELECT ';' AS a -- tail;\nFROM `x;y`");
    }

    #[test]
    fn a_text_of_anything_but_set_create_and_one_insert_at_its_end_is_refused() {
        for sql in [
            "",
            "SET 'a' = 'b';",
            "DROP TABLE x; INSERT INTO s SELECT 1;",
            "INSERT INTO s SELECT 1; SET 'a' = 'b';",
            "INSERT INTO s SELECT 1; INSERT INTO s SELECT 2;",
            "SET 'table.dml-sync' = 'TRUE'; INSERT INTO s SELECT 1;",
            "SELECT 1;",
        ] {
            assert!(matches!(cut(sql), Err(ProviderFailure::Unsupported { .. })), "{sql}");
        }
    }

    /// SEC-001
    #[test]
    fn secrets_take_the_place_of_masked_options_of_tables_alone() {
        let sql = "CREATE TABLE x (a STRING) WITH ('properties.sasl.jaas.config' = '***', 'topic' = '***', \
                   'value.avro-confluent.basic-auth.user-info' = '***');\n\
                   INSERT INTO s SELECT 'properties.sasl.jaas.config' = '***' AS a FROM x;";
        let (prepare, insert) = cut(sql).expect("statements");
        let expected = "CREATE TABLE x (a STRING) WITH ('properties.sasl.jaas.config' = \
                        'org.apache.flink.kafka.shaded.org.apache.kafka.common.security.scram.ScramLoginModule required \
                        username=\"alice\" password=\"p\\\"w\\\\d''x\";', 'topic' = '***', \
                        'value.avro-confluent.basic-auth.user-info' = 'reader:registry-pw')";
        assert_eq!(prepare, [expected]);
        assert_eq!(insert, "INSERT INTO s SELECT 'properties.sasl.jaas.config' = '***' AS a FROM x");
    }

    #[test]
    fn a_masked_option_whose_secret_is_not_declared_is_not_sent() {
        let sql = "CREATE TABLE x (a STRING) WITH ('properties.ssl.key.password' = '***'); INSERT INTO s SELECT 1;";
        assert_eq!(cut(sql), Err(ProviderFailure::Config { field: "ssl_key_password of runtime.kafka" }));
    }

    /// SEC-003: as they are, as they stand in a JAAS value, and as they stand in SQL.
    #[test]
    fn every_spelling_of_a_secret_is_removed_from_what_flink_says() {
        let (kafka, registry) = secured();
        let fillings = Fillings::new(&cluster(None, None), Some(&kafka), Some(&registry));
        for said in ["p\"w\\d'x", "p\\\"w\\\\d'x", "p\"w\\d''x", "registry-pw", "reader:registry-pw"] {
            let shown = crate::providers::VendorText::at_border(&format!("value {said}."), &fillings.secrets());
            assert_eq!(shown.expect("text").to_string(), "value <redacted>.");
        }
    }
}
