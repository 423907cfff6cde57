//! `deployment_state`: where the state is kept, and the variables that it names.

use std::collections::BTreeMap;

use super::super::secret::Secret;

/// Where ownership and operation control are kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeploymentState {
    Local {
        /// Seconds.
        lock_timeout: u32,
    },
    Postgres(PostgresState),
}

/// Names of variables, never values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PostgresState {
    pub namespace: String,
    /// Seconds.
    pub lock_timeout: u32,
    pub dsn_env: String,
    pub writer_dsn_env: Option<String>,
    pub writer_role_env: Option<String>,
    pub schema: String,
}

/// The values of the variables that [`PostgresState`] names, for whoever connects. `Debug` prints none.
#[derive(Clone, Default)]
pub struct StateVariables {
    values: BTreeMap<String, Secret>,
    redirecting: Option<&'static str>,
}

impl StateVariables {
    /// Variables of a process with which other clients of PostgreSQL replace what a connection string says.
    const REDIRECTING: [&str; 5] = ["PGHOST", "PGHOSTADDR", "PGPORT", "PGSERVICE", "PGSERVICEFILE"];

    /// `variables` = of the process and of the project's files; `process` = of the process alone.
    pub fn of(
        state: &DeploymentState,
        variables: &BTreeMap<String, String>,
        process: &BTreeMap<String, String>,
    ) -> Self {
        let DeploymentState::Postgres(postgres) = state else { return Self::default() };
        let names = [Some(&postgres.dsn_env), postgres.writer_dsn_env.as_ref(), postgres.writer_role_env.as_ref()];
        let values = names
            .into_iter()
            .flatten()
            .filter_map(|name| Some((name.clone(), Secret::new(variables.get(name)?.as_str()))))
            .collect();
        Self { values, redirecting: Self::REDIRECTING.into_iter().find(|name| process.contains_key(*name)) }
    }

    pub fn get(&self, name: &str) -> Option<&Secret> {
        self.values.get(name)
    }

    /// The name of a variable of the process that must not be set.
    pub fn redirecting(&self) -> Option<&'static str> {
        self.redirecting
    }
}

impl std::fmt::Debug for StateVariables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateVariables(**********)")
    }
}
