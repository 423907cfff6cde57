//! The one place where an error of the driver becomes ours. Its text goes no further: it may hold names, statements and values.

use tokio_postgres::error::{Severity, SqlState};

use crate::providers::tls::is_tls_error;
use crate::state::error::StateError;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// The connection is over, or did not answer in time.
    Gone,
    /// Another transaction was in the way: 40001, 40P01.
    Serialization,
    /// 42501.
    Forbidden,
    /// A rule of the tables: class 23.
    Integrity,
    /// The server gave up waiting: 55P03, 57014.
    Waited,
    /// Anything else that the server said.
    Refused,
}

impl From<tokio_postgres::Error> for Trouble {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(answer) = error.as_db_error() else {
            // A value of another type than asked for is an answer, not an end.
            return if error.is_closed() || is_io(&error) { Self::Gone } else { Self::Refused };
        };
        if matches!(answer.parsed_severity(), Some(Severity::Fatal | Severity::Panic)) {
            return Self::Gone;
        }
        let code = answer.code();
        if *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED {
            Self::Serialization
        } else if *code == SqlState::INSUFFICIENT_PRIVILEGE {
            Self::Forbidden
        } else if *code == SqlState::LOCK_NOT_AVAILABLE || *code == SqlState::QUERY_CANCELED {
            Self::Waited
        } else if code.code().starts_with("23") {
            Self::Integrity
        } else {
            Self::Refused
        }
    }
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    std::error::Error::source(error).is_some_and(|cause| cause.is::<std::io::Error>())
}

impl Trouble {
    /// Of a read or a proof that holds no lock.
    pub fn unavailable(self) -> StateError {
        StateError::unavailable(match self {
            Self::Gone => "the connection to its server ended",
            Self::Serialization => "another transaction was in the way",
            Self::Forbidden => "its role lacks a right that it needs",
            Self::Integrity => "its server refused a row",
            Self::Waited => "its server gave up waiting",
            Self::Refused => "its server refused a statement",
        })
    }
}

/// Why no connection came about.
pub fn not_connected(error: &tokio_postgres::Error) -> StateError {
    let state = error.code();
    let login = |code: &SqlState| code.code().starts_with("28") || *code == SqlState::INVALID_CATALOG_NAME;
    match state {
        Some(code) if login(code) => StateError::unavailable("its server refused the login")
            .suggest("check user, password, database and certificate of the connection string"),
        Some(code) if *code == SqlState::TOO_MANY_CONNECTIONS => {
            StateError::unavailable("its server has no connection left")
                .suggest("raise the connection limit of the server or of the role: a run needs up to four")
        }
        Some(_) => StateError::unavailable("its server refused the connection"),
        None if is_tls_error(error) => StateError::unavailable("TLS with its server failed")
            .suggest("check 'sslmode' and 'sslrootcert' of the connection string against the server's certificate"),
        None => StateError::unavailable("its server cannot be reached")
            .suggest("check that the server runs, and host and port of the connection string"),
    }
}
