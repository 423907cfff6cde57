//! A declared connector against the live one, by exact type and value.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::super::model::Verb;
use super::identity::is_plain;
use super::observation::ManagedConnectorObservation;
use crate::compiler::artifact::ConnectorArtifact;

/// What happens to one configuration key. Values are compared and never kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyChange {
    Added,
    Changed,
    Removed,
}

impl KeyChange {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

/// Which keys an update touches; of a connector that does not exist, every key is added.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct ConnectorDiff {
    pub exists: bool,
    pub keys: BTreeMap<String, KeyChange>,
}

impl ConnectorDiff {
    pub fn of(desired: &ConnectorArtifact, live: &ManagedConnectorObservation) -> Self {
        let config = live.config();
        let names: BTreeSet<&String> =
            desired.config.keys().chain(config.into_iter().flat_map(BTreeMap::keys)).collect();
        let change = |key: &String| {
            let (wanted, there) = (desired.config.get(key), config.and_then(|config| config.get(key)));
            match (wanted, there) {
                (Some(wanted), Some(there)) => (there.as_str() != Some(wanted)).then_some(KeyChange::Changed),
                (Some(_), None) => Some(KeyChange::Added),
                (None, Some(_)) => Some(KeyChange::Removed),
                (None, None) => None,
            }
        };
        let keys = names.into_iter().filter_map(|key| Some((key.clone(), change(key)?))).collect();
        Self { exists: live.exists(), keys }
    }

    /// Nothing is known of what is live, so nothing is assumed to be.
    pub fn of_absent(desired: &ConnectorArtifact) -> Self {
        Self { exists: false, keys: desired.config.keys().map(|key| (key.clone(), KeyChange::Added)).collect() }
    }

    pub(in crate::planner) fn verb(&self) -> Option<Verb> {
        match self.exists {
            false => Some(Verb::Create),
            true => (!self.keys.is_empty()).then_some(Verb::Update),
        }
    }

    pub fn removes_a_key(&self) -> bool {
        self.keys.values().any(|change| *change == KeyChange::Removed)
    }

    /// Key → category. A key that could carry something else than a plain name is numbered instead of shown.
    pub fn changes(&self) -> Map<String, Value> {
        let mut unsafe_keys = 0;
        let shown = self.keys.iter().map(|(key, change)| {
            let name = match is_plain(key) {
                true => key.clone(),
                false => {
                    unsafe_keys += 1;
                    format!("<unsafe-config-key-{unsafe_keys}>")
                }
            };
            let category = json!({
                "change": change.as_str(),
                "from_present": *change != KeyChange::Added,
                "to_present": *change != KeyChange::Removed,
            });
            (name, category)
        });
        shown.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{absent, connector, present};
    use super::*;

    #[test]
    fn an_absent_connector_is_created_and_its_keys_are_named_without_values() {
        let diff = ConnectorDiff::of(&connector("sink", &[("connection.password", "s3cret")]), &absent("sink"));
        assert_eq!(diff.verb(), Some(Verb::Create));
        let shown = Value::Object(diff.changes());
        let added = json!({"change": "added", "from_present": false, "to_present": true});
        assert_eq!(shown["connection.password"], added);
        assert_eq!(shown.as_object().unwrap().len(), 4);
        assert!(!shown.to_string().contains("s3cret"));
    }

    #[test]
    fn values_are_compared_by_exact_type_and_text() {
        let desired = connector("sink", &[("a", "1"), ("b", "x"), ("d", "${file:/etc/s:p}")]);
        let mut live: Vec<(&str, &str)> = desired.config.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(ConnectorDiff::of(&desired, &present("sink", &live)).verb(), None);
        live.retain(|(key, _)| *key != "b");
        live.push(("c", "y"));
        let diff = ConnectorDiff::of(&desired, &present("sink", &live));
        assert_eq!((diff.verb(), diff.removes_a_key()), (Some(Verb::Update), true));
        assert_eq!(
            Value::Object(diff.changes()),
            json!({
                "b": {"change": "added", "from_present": false, "to_present": true},
                "c": {"change": "removed", "from_present": true, "to_present": false},
            })
        );
        let mut numbers: Map<String, Value> = desired.config.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
        numbers.insert("a".to_owned(), json!(1));
        let live = ManagedConnectorObservation::present(
            super::super::testing::binding(),
            super::super::testing::name("sink"),
            numbers,
        );
        let diff = ConnectorDiff::of(&desired, &live.unwrap());
        assert_eq!(diff.keys, [("a".to_owned(), KeyChange::Changed)].into());
    }

    /// SEC-003
    #[test]
    fn a_key_that_is_no_plain_name_is_numbered() {
        let desired = connector("sink", &[]);
        let mut live: Vec<(&str, &str)> = desired.config.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        live.extend([("pass word=hunter2", "x"), ("https://u:p@h", "y")]);
        let shown = Value::Object(ConnectorDiff::of(&desired, &present("sink", &live)).changes());
        let names: Vec<&String> = shown.as_object().unwrap().keys().collect();
        assert_eq!(names, ["<unsafe-config-key-1>", "<unsafe-config-key-2>"]);
    }
}
