//! What can go wrong with a provider, classified at its border by type and never by the wording of a message.

use std::fmt;

use super::vendor_text::VendorText;
use crate::codes::{Code, Diagnostic};

/// A named thing at a provider.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Identity {
    Topic(String),
    Subject(String),
    Connector(String),
    Job(String),
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Topic(name) => write!(f, "topic:{name}"),
            Self::Subject(name) => write!(f, "schema:{name}"),
            Self::Connector(name) => write!(f, "connector:{name}"),
            Self::Job(name) => write!(f, "flink_job:{name}"),
        }
    }
}

const TOPIC_ALREADY_EXISTS: i16 = 36;

/// The code of a definite refusal, as its protocol gives it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// A broker's error code with its name, for example 40 and `INVALID_CONFIG`.
    Kafka { code: i16, name: String },
    /// An HTTP status, and the number inside the error body when there was one.
    Http { status: u16, error_code: Option<i64> },
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kafka { name, .. } => f.write_str(name),
            Self::Http { status, error_code: None } => write!(f, "HTTP {status}"),
            Self::Http { status, error_code: Some(code) } if *code == i64::from(*status) => write!(f, "HTTP {status}"),
            Self::Http { status, error_code: Some(code) } => write!(f, "HTTP {status}, error {code}"),
        }
    }
}

/// A provider call that did not do what was asked. No variant holds an address, a header, a body, a configuration value or
/// an error of another crate; only [`VendorText`] comes from outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProviderFailure {
    /// A setting is missing; `field` is its path in the runtime block.
    Config {
        field: &'static str,
    },
    /// A setting is present and cannot be used; `problem` completes the sentence "field …".
    ConfigInvalid {
        field: &'static str,
        problem: &'static str,
    },
    /// A job is to be submitted, and its Flink cluster declares no SQL Gateway.
    NoSqlGateway,
    /// A certificate, key or handshake; `what` says which.
    Tls {
        what: &'static str,
    },
    /// Credentials refused, or a right is missing; a broker says which one.
    Auth {
        text: Option<VendorText>,
    },
    Unreachable,
    /// The service that issues the tokens for a login.
    IdentityProviderUnreachable,
    Timeout,
    /// An answer outside its protocol.
    Protocol {
        what: &'static str,
    },
    /// A resource's answer that a strict observation cannot use.
    Unreadable {
        identity: Identity,
        what: &'static str,
    },
    /// A schema of a type that the registry knows and this program does not; `spelled` as the registry names it.
    SchemaTypeUnsupported {
        identity: Identity,
        spelled: VendorText,
    },
    TooLarge,
    Ambiguous {
        what: &'static str,
    },
    Unsupported {
        what: &'static str,
    },
    NotFound,
    /// The live resource is not what was planned against; nothing was sent.
    Conflict {
        what: &'static str,
    },
    /// The topic has more partitions than declared; nothing was sent.
    CannotReducePartitions {
        live: u32,
        desired: u32,
    },
    /// Not now; nothing was changed.
    Busy {
        what: &'static str,
    },
    /// A definite refusal: no effect.
    Rejected {
        reply: Reply,
        text: Option<VendorText>,
    },
    /// Flink did not accept the SQL of a job: no effect.
    SqlRefused {
        text: Option<VendorText>,
    },
    /// Cancelled, right lost or panic. `uncertain`: a request may have been applied.
    Aborted {
        uncertain: bool,
    },
    /// A request was sent and no usable answer came back.
    Uncertain {
        stage: &'static str,
        unresolved: Vec<Identity>,
    },
    /// Some of the action took effect and the rest failed.
    Partial {
        done: Vec<&'static str>,
        failed: &'static str,
        class: Box<ProviderFailure>,
    },
    /// A managed connector deletion that did not end in proved absence, whatever the reason.
    RemovalDrift,
}

impl ProviderFailure {
    /// Whether the action may have had an effect: it then needs recovery.
    pub fn may_have_effect(&self) -> bool {
        match self {
            Self::Aborted { uncertain } => *uncertain,
            Self::Uncertain { .. } | Self::Partial { .. } | Self::RemovalDrift => true,
            Self::Config { .. }
            | Self::ConfigInvalid { .. }
            | Self::NoSqlGateway
            | Self::Tls { .. }
            | Self::Auth { .. }
            | Self::Unreachable
            | Self::IdentityProviderUnreachable
            | Self::Timeout
            | Self::Protocol { .. }
            | Self::Unreadable { .. }
            | Self::SchemaTypeUnsupported { .. }
            | Self::TooLarge
            | Self::Ambiguous { .. }
            | Self::Unsupported { .. }
            | Self::NotFound
            | Self::Conflict { .. }
            | Self::CannotReducePartitions { .. }
            | Self::Busy { .. }
            | Self::Rejected { .. }
            | Self::SqlRefused { .. } => false,
        }
    }

    /// The same failure, met after the request left: whatever does not prove that nothing happened becomes uncertain.
    pub fn after_commit(self, stage: &'static str, unresolved: Vec<Identity>) -> Self {
        match self {
            Self::Tls { .. }
            | Self::Unreachable
            | Self::IdentityProviderUnreachable
            | Self::Timeout
            | Self::TooLarge
            | Self::Protocol { .. }
            | Self::Unreadable { .. }
            | Self::SchemaTypeUnsupported { .. } => Self::Uncertain { stage, unresolved },
            Self::Config { .. }
            | Self::ConfigInvalid { .. }
            | Self::NoSqlGateway
            | Self::Auth { .. }
            | Self::Ambiguous { .. }
            | Self::Unsupported { .. }
            | Self::NotFound
            | Self::Conflict { .. }
            | Self::CannotReducePartitions { .. }
            | Self::Busy { .. }
            | Self::Rejected { .. }
            | Self::SqlRefused { .. }
            | Self::Aborted { .. }
            | Self::Uncertain { .. }
            | Self::Partial { .. }
            | Self::RemovalDrift => self,
        }
    }

    pub fn code(&self) -> Code {
        match self {
            Self::Config { .. } | Self::ConfigInvalid { .. } => Code::E208MissingConfig,
            Self::NoSqlGateway => Code::E206SqlGatewayNotConfigured,
            Self::SqlRefused { .. } => Code::E403FlinkSqlError,
            Self::Tls { .. } => Code::E405SslError,
            Self::Auth { .. } => Code::E404AuthFailed,
            Self::Unreachable | Self::IdentityProviderUnreachable => Code::E406ConnectionRefused,
            Self::CannotReducePartitions { .. } => Code::E401CannotReducePartitions,
            Self::Rejected { reply: Reply::Http { status: 409, .. }, .. } => Code::E402SchemaIncompatible,
            Self::Aborted { .. } => Code::E423StateLockLost,
            Self::RemovalDrift => Code::E428ConnectorRemovalDrift,
            Self::Rejected { .. }
            | Self::Busy { .. }
            | Self::Timeout
            | Self::Protocol { .. }
            | Self::Unreadable { .. }
            | Self::SchemaTypeUnsupported { .. }
            | Self::TooLarge
            | Self::Ambiguous { .. }
            | Self::Unsupported { .. }
            | Self::NotFound
            | Self::Conflict { .. }
            | Self::Uncertain { .. }
            | Self::Partial { .. } => Code::E407DeployError,
        }
    }

    /// Whether planning again would be the remedy, had no operation begun.
    pub fn outdates_the_plan(&self) -> bool {
        match self {
            Self::Conflict { .. }
            | Self::CannotReducePartitions { .. }
            | Self::Rejected { reply: Reply::Kafka { code: TOPIC_ALREADY_EXISTS, .. }, .. } => true,
            Self::Config { .. }
            | Self::ConfigInvalid { .. }
            | Self::NoSqlGateway
            | Self::Tls { .. }
            | Self::Auth { .. }
            | Self::Unreachable
            | Self::IdentityProviderUnreachable
            | Self::Timeout
            | Self::Protocol { .. }
            | Self::Unreadable { .. }
            | Self::SchemaTypeUnsupported { .. }
            | Self::TooLarge
            | Self::Ambiguous { .. }
            | Self::Unsupported { .. }
            | Self::NotFound
            | Self::Busy { .. }
            | Self::Rejected { .. }
            | Self::SqlRefused { .. }
            | Self::Aborted { .. }
            | Self::Uncertain { .. }
            | Self::Partial { .. }
            | Self::RemovalDrift => false,
        }
    }

    /// What the server itself said, when it said something.
    pub fn vendor_text(&self) -> Option<&VendorText> {
        match self {
            Self::Auth { text } | Self::Rejected { text, .. } | Self::SqlRefused { text } => text.as_ref(),
            Self::Partial { class, .. } => class.vendor_text(),
            Self::Config { .. }
            | Self::ConfigInvalid { .. }
            | Self::NoSqlGateway
            | Self::Tls { .. }
            | Self::Unreachable
            | Self::IdentityProviderUnreachable
            | Self::Timeout
            | Self::Protocol { .. }
            | Self::Unreadable { .. }
            | Self::SchemaTypeUnsupported { .. }
            | Self::TooLarge
            | Self::Ambiguous { .. }
            | Self::Unsupported { .. }
            | Self::NotFound
            | Self::Conflict { .. }
            | Self::CannotReducePartitions { .. }
            | Self::Busy { .. }
            | Self::Aborted { .. }
            | Self::Uncertain { .. }
            | Self::RemovalDrift => None,
        }
    }

    /// The error for the user, with what to do next. `doing` says what failed, for example `topic:orders.v1: create` or `Kafka: connect`.
    pub fn diagnostic(&self, doing: &str) -> Diagnostic {
        let message = match self.vendor_text() {
            Some(text) => format!("{doing} {self}: {text}"),
            None => format!("{doing} {self}"),
        };
        Diagnostic::new(self.code(), message).suggest(self.advice())
    }

    fn advice(&self) -> &'static str {
        match self {
            Self::Config { .. } => "set it in the runtime block of the project or of the selected environment",
            Self::ConfigInvalid { .. } => "correct it in the runtime block",
            Self::NoSqlGateway => "set sql_gateway_url of the cluster in runtime.flink.clusters",
            Self::SqlRefused { .. } => {
                "correct the SQL of the model, or what it reads and writes: `streamt show model NAME --sql` prints the job's whole text"
            }
            Self::Tls { .. } => {
                "check the ssl_* settings of the runtime block, and that the host name is the certificate's"
            }
            Self::Auth { .. } => "check the credentials of the runtime block and the rights of that principal",
            Self::Unreachable => {
                "check address and protocol (security_protocol, http or https) in the runtime block and that the service is running"
            }
            Self::IdentityProviderUnreachable => {
                "check sasl_oauth_token_url in the runtime block and that the identity provider answers"
            }
            Self::Timeout => "check that the service is healthy",
            Self::CannotReducePartitions { .. } => {
                "Kafka cannot take partitions away: declare at least as many as the topic has"
            }
            Self::Conflict { .. } => "plan again: the live resource changed after the plan was made",
            Self::Rejected { reply: Reply::Kafka { code: TOPIC_ALREADY_EXISTS, .. }, .. } => {
                "plan again: the topic was created after the live topics were read"
            }
            Self::Busy { .. } => "wait until the service has settled",
            Self::Uncertain { .. } | Self::Aborted { uncertain: true } | Self::Partial { .. } | Self::RemovalDrift => {
                "look at the live resource before anything else is changed, then recover the operation"
            }
            Self::Rejected { reply: Reply::Http { status: 409, .. }, .. } => {
                "change the schema so that it stays compatible, or change the subject's level first"
            }
            Self::Rejected { reply: Reply::Http { status: 404 | 405, .. }, .. } => {
                "check the address in the runtime block, its path included: what answers there does not know this request"
            }
            Self::Rejected { reply: Reply::Http { status: 500.., .. }, .. } => {
                "the log of the service says what failed"
            }
            Self::Rejected { .. } => {
                "correct what the service refuses; where it does not say what that is, its log does"
            }
            Self::Protocol { .. } | Self::TooLarge => {
                "check that the address in the runtime block is the service's own: a proxy, a login page or another service may answer there"
            }
            Self::Unreadable { .. } => {
                "look at it with the service's own tools: what it answers cannot be compared with a declaration"
            }
            Self::SchemaTypeUnsupported { .. } => "leave this subject out of the project",
            Self::Ambiguous { .. } => "put it in order with the service's own tools",
            Self::Unsupported { .. } => "declare it without that, or use a newer version of the service",
            Self::NotFound => "check its name and the environment",
            Self::Aborted { uncertain: false } => {
                "nothing of it was changed: see `streamt state status` for what was before it"
            }
        }
    }
}

/// Completes a sentence whose subject is what was being done: `… refused (INVALID_CONFIG)`.
impl fmt::Display for ProviderFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config { field } => write!(f, "needs {field}, which is not set"),
            Self::ConfigInvalid { field, problem } => write!(f, "cannot use {field}: it {problem}"),
            Self::NoSqlGateway => f.write_str("needs a SQL Gateway, which its Flink cluster does not declare"),
            Self::SqlRefused { .. } => f.write_str("was refused by Flink"),
            Self::Tls { what } => write!(f, "failed in TLS: {what}"),
            Self::Auth { .. } => f.write_str("was not authorized"),
            Self::Unreachable => f.write_str("failed: the service cannot be reached"),
            Self::IdentityProviderUnreachable => f.write_str("failed: the identity provider cannot be reached"),
            Self::Timeout => f.write_str("failed: no answer in time"),
            Self::Protocol { what } => write!(f, "failed: the answer is not valid ({what})"),
            Self::Unreadable { identity, what } => write!(f, "failed: {identity} cannot be read ({what})"),
            Self::SchemaTypeUnsupported { identity, spelled } => {
                write!(f, "failed: {identity} has type '{spelled}', which is not supported")
            }
            Self::TooLarge => f.write_str("failed: the answer is larger than allowed"),
            Self::Ambiguous { what } => write!(f, "failed: more than one answer is possible ({what})"),
            Self::Unsupported { what } => write!(f, "is not supported by this server ({what})"),
            Self::NotFound => f.write_str("failed: it does not exist"),
            Self::Conflict { what } => write!(f, "was not sent: the live resource is not what was planned ({what})"),
            Self::CannotReducePartitions { live, desired } => {
                write!(f, "was not sent: the topic has {live} partitions, more than the {desired} declared")
            }
            Self::Rejected { reply, .. } => write!(f, "refused ({reply})"),
            Self::Busy { what } => write!(f, "failed: {what}"),
            Self::RemovalDrift => {
                f.write_str("could not prove the exact absence of the connector: the outcome is unknown")
            }
            Self::Aborted { uncertain: false } => f.write_str("was stopped before anything was sent"),
            Self::Aborted { uncertain: true } => {
                f.write_str("was stopped after its request was sent: the outcome is unknown")
            }
            Self::Uncertain { stage, .. } => write!(f, "was sent and not answered ({stage}): the outcome is unknown"),
            Self::Partial { done, failed, class } => {
                write!(f, "took effect in part ({}), then {failed} {class}", done.join(", "))
            }
        }
    }
}

impl std::error::Error for ProviderFailure {}
