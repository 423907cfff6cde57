//! Sinks that run on the workers as declarations: models that say exactly their configuration, and nothing that is a secret.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::secrets::secret_keys;
use super::verify::{compiled, unlike};
use super::yaml::{Yaml, scalar};
use crate::codes::{Code, Diagnostic};
use crate::compiler::artifact::RESERVED_CONFIG;
use crate::messages::discover::FoundConnectors;
use crate::project::Project;
use crate::project::model::OwnershipMode;
use crate::providers::connect::{Direction, ListedConnector};

/// How many names an error repeats.
const TOLD: usize = 5;

/// Where the records of a sink come from, in the words of the project.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    Source(String),
    Model(String),
}

/// One sink that becomes a declaration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sink {
    pub found: ListedConnector,
    pub class: String,
    pub topics: Vec<String>,
    inputs: Vec<Input>,
}

/// What the connectors of a cluster come to.
#[derive(Debug, Default)]
pub struct Sorted {
    pub sinks: Vec<Sink>,
    /// The project has a sink of that name.
    pub declared: Vec<ListedConnector>,
    /// Sources, and connectors of a class that the workers do not have: the project language declares sinks.
    pub others: Vec<ListedConnector>,
}

/// E703, E705 and E708 for all that is in the way at once: nothing is declared then. `inputs`: what the project calls a topic.
pub fn sort(
    found: FoundConnectors,
    declared: impl Fn(&str) -> bool,
    taken: &BTreeMap<String, &'static str>,
    inputs: &BTreeMap<String, Input>,
) -> Result<Sorted, Diagnostic> {
    let FoundConnectors { connectors, types } = found;
    let mut sorted = Sorted::default();
    let (mut secret, mut unsayable) = (Vec::new(), Vec::new());
    for one in connectors {
        if declared(&one.name) {
            sorted.declared.push(one);
            continue;
        }
        match one.direction {
            Direction::Sink => {}
            Direction::Source | Direction::Unknown => {
                sorted.others.push(one);
                continue;
            }
        }
        if let Some(what) = taken.get(&one.name) {
            let text = format!("connector '{}' would be named as a {what} of the project is", one.name);
            return Err(Diagnostic::new(Code::E703ImportNameCollision, text).suggest(
                "leave it out with --exclude; a connector cannot be declared under another name than its own",
            ));
        }
        let class = one.config.get("connector.class").cloned().unwrap_or_default();
        let none = BTreeMap::new();
        let keys = secret_keys(&one.config, types.get(&class).unwrap_or(&none));
        if !keys.is_empty() {
            secret.push(format!("{} ({})", one.name, keys.join(", ")));
            continue;
        }
        match sayable(&one, inputs) {
            Ok((topics, inputs)) => sorted.sinks.push(Sink { found: one, class, topics, inputs }),
            Err(why) => unsayable.push(format!("{} {why}", one.name)),
        }
    }
    match (secret.is_empty(), unsayable.is_empty()) {
        (true, true) => Ok(sorted),
        (false, _) => Err(Diagnostic::new(
            Code::E708ImportSecretFound,
            format!("connectors hold secrets as plain text: {}", some(&secret)),
        )
        .suggest(
            "put each into a config provider of the workers, as ${file:/path:key}, and import again; or leave the connector out \
             with --exclude",
        )),
        (true, false) => Err(Diagnostic::new(
            Code::E705ImportValidationFailed,
            format!("connectors cannot be declared as they are: {}", some(&unsayable)),
        )
        .suggest("import their topics first, or leave them out with --exclude")),
    }
}

fn some(all: &[String]) -> String {
    let more = all.len().saturating_sub(TOLD);
    let text = all.iter().take(TOLD).map(String::as_str).collect::<Vec<_>>().join("; ");
    if more == 0 { text } else { format!("{text}; and {more} more") }
}

/// The topics that a sink reads, by name and in order, and what the project calls them. The error goes on after its name.
fn sayable(one: &ListedConnector, inputs: &BTreeMap<String, Input>) -> Result<(Vec<String>, Vec<Input>), &'static str> {
    if one.config.contains_key("topics.regex") {
        return Err("chooses its topics by a pattern");
    }
    if one.config.get("name") != Some(&one.name) {
        return Err("has a configuration of another name");
    }
    let topics = one.config.get("topics").map(String::as_str).unwrap_or_default();
    let topics: Vec<String> = topics.split(',').map(str::to_owned).collect();
    let named: Option<Vec<Input>> = topics.iter().map(|topic| inputs.get(topic).cloned()).collect();
    Ok((topics, named.ok_or("reads a topic that the project does not declare")?))
}

impl Sink {
    /// Its own settings, in the order of their names.
    fn settings(&self) -> impl Iterator<Item = (&String, &String)> {
        self.found.config.iter().filter(|(key, _)| !RESERVED_CONFIG.contains(&key.as_str()))
    }

    /// The declaration as results print it: names of settings, no value.
    pub fn data(&self, mode: OwnershipMode) -> Value {
        let from: Vec<Value> = self
            .inputs
            .iter()
            .map(|input| match input {
                Input::Source(name) => json!({"source": name}),
                Input::Model(name) => json!({"ref": name}),
            })
            .collect();
        json!({
            "name": self.found.name, "ownership": {"mode": mode}, "from": from,
            "sink": {"connector": self.class, "config_keys": self.settings().map(|(key, _)| key).collect::<Vec<_>>()},
        })
    }

    fn write(&self, mode: OwnershipMode, yaml: &mut Yaml) {
        yaml.line(2, &format!("- name: {}", scalar(&self.found.name)));
        yaml.line(4, &format!("ownership: {{mode: {}}}", mode.as_str()));
        yaml.line(4, "from:");
        for input in &self.inputs {
            let (word, name) = match input {
                Input::Source(name) => ("source", name),
                Input::Model(name) => ("ref", name),
            };
            yaml.line(6, &format!("- {word}: {}", scalar(name)));
        }
        yaml.line(4, "sink:");
        yaml.pair(6, "connector", &self.class);
        let mut settings = self.settings().peekable();
        if settings.peek().is_some() {
            yaml.line(6, "config:");
        }
        for (key, value) in settings {
            yaml.pair(8, key, value);
        }
    }
}

/// The whole file.
pub fn text(environment: &str, mode: OwnershipMode, sinks: &[Sink]) -> String {
    let mut yaml = Yaml::default();
    let next = match mode {
        OwnershipMode::External => "They are external: streamt reads them and never changes them.",
        OwnershipMode::Adopted | OwnershipMode::Managed => {
            "Nothing is claimed yet: `streamt adopt` does that, one by one or by a reviewed selection."
        }
    };
    yaml.line(
        0,
        &format!("# Sinks that run in the environment '{environment}', written by `streamt import` as they are."),
    );
    yaml.line(0, &format!("# {next}"));
    yaml.line(0, "models:");
    for sink in sinks {
        sink.write(mode, &mut yaml);
    }
    yaml.end()
}

/// What is compiled of each declaration is exactly what runs, so that a plan after its adoption is empty.
pub fn says(sinks: &[Sink], mode: OwnershipMode, project: &Arc<Project>) -> Result<(), Diagnostic> {
    let compiled = compiled(project)?;
    for sink in sinks {
        let artifact = compiled.artifacts.connectors.iter().find(|connector| connector.name == sink.found.name);
        let same = artifact.is_some_and(|artifact| {
            artifact.config == sink.found.config
                && artifact.connector_class == sink.class
                && artifact.topics == sink.topics
                && artifact.ownership.mode == mode
        });
        if !same {
            return Err(unlike(&sink.found.name, "configuration"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connector(name: &str, direction: Direction, config: &[(&str, &str)]) -> ListedConnector {
        let own = [("name", name), ("connector.class", "X")];
        let config = own.iter().chain(config).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        ListedConnector { name: name.to_owned(), direction, config }
    }

    fn sorted(connectors: Vec<ListedConnector>) -> Result<Sorted, Diagnostic> {
        let inputs = [("t1", Input::Source("first".into())), ("t2", Input::Model("second".into()))]
            .map(|(t, i)| (t.to_owned(), i));
        let taken = [("orders".to_owned(), "model")].into();
        let types = [("X".to_owned(), [("odd".to_owned(), "PASSWORD".to_owned())].into())].into();
        sort(FoundConnectors { connectors, types }, |name| name == "known", &taken, &inputs.into())
    }

    #[test]
    fn sinks_are_declared_and_what_is_no_sink_is_left_out() {
        let found = sorted(vec![
            connector("a", Direction::Sink, &[("topics", "t2,t1"), ("x", "yes"), ("y", "1")]),
            connector("feed", Direction::Source, &[("odd", "hunter2")]),
            connector("gone", Direction::Unknown, &[]),
            connector("known", Direction::Sink, &[("odd", "hunter2")]),
        ])
        .unwrap();
        let names = |all: &[ListedConnector]| all.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
        assert_eq!(
            (names(&found.others), names(&found.declared)),
            (vec!["feed".into(), "gone".into()], vec!["known".into()])
        );
        let text = text("prod", OwnershipMode::Adopted, &found.sinks);
        let expected = "models:
  - name: a
    ownership: {mode: adopted}
    from:
      - ref: second
      - source: first
    sink:
      connector: X
      config:
        x: \"yes\"
        \"y\": \"1\"
";
        assert!(text.ends_with(expected), "{text}");
        let data = found.sinks[0].data(OwnershipMode::External);
        assert_eq!(data["sink"], json!({"connector": "X", "config_keys": ["x", "y"]}));
    }

    /// SEC-002, SEC-003: all of them by name and key, and no value.
    #[test]
    fn one_secret_keeps_all_from_being_written() {
        let refused = sorted(vec![
            connector("a", Direction::Sink, &[("topics", "t1")]),
            connector("b", Direction::Sink, &[("topics", "t1"), ("odd", "hunter2")]),
            connector("c", Direction::Sink, &[("topics", "t9"), ("db.password", "hunter2")]),
        ])
        .unwrap_err();
        assert_eq!(refused.code, Code::E708ImportSecretFound);
        assert!(refused.message.contains("b (odd); c (db.password)"), "{}", refused.message);
        assert!(!format!("{refused:?}").contains("hunter2"));
    }

    #[test]
    fn what_the_language_cannot_say_is_refused_with_its_reason() {
        for (config, told) in [
            (&[("topics.regex", "t.*")][..], "by a pattern"),
            (&[("topics", "t9")], "does not declare"),
            (&[("topics", "t1, t2")], "does not declare"),
            (&[], "does not declare"),
            (&[("topics", "t1"), ("name", "b")], "another name"),
        ] {
            let refused = sorted(vec![connector("a", Direction::Sink, config)]).unwrap_err();
            assert_eq!(refused.code, Code::E705ImportValidationFailed);
            assert!(refused.message.contains(told), "{}", refused.message);
        }
        let taken = sorted(vec![connector("orders", Direction::Sink, &[("topics", "t1")])]).unwrap_err();
        assert_eq!(taken.code, Code::E703ImportNameCollision);
        let many = (0..9).map(|n| connector(&format!("m{n}"), Direction::Sink, &[("topics", "t9")])).collect();
        assert!(sorted(many).unwrap_err().message.ends_with("and 4 more"));
    }
}
