//! The part of a project that a direct apply is limited to.

use std::collections::BTreeSet;

use crate::codes::suggest::hint;
use crate::codes::{Code, Diagnostic};
use crate::compiler::artifact::Ownership;
use crate::compiler::{Compiled, Dag, NodeType};
use crate::project::model::OwnershipMode;

/// Selected models, closed over everything upstream of them, and the sources that they read directly.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Selection {
    pub models: BTreeSet<String>,
    pub sources: BTreeSet<String>,
}

impl Selection {
    /// None without `--target` and `--select`. E102 for an unknown model, E208 for an empty result, E902 for an expression
    /// other than `tag:<t>`, E418 in a project that declares removals, which only a reviewed plan may carry out.
    pub fn resolve(
        compiled: &Compiled,
        target: Option<&str>,
        select: Option<&str>,
    ) -> Result<Option<Self>, Diagnostic> {
        let tagged = compiled.project.models.iter().map(|model| (model.name.as_str(), model.tags.as_slice()));
        let selection = Self::among(&tagged.collect::<Vec<_>>(), &compiled.dag, target, select)?;
        let project = &compiled.project;
        let removes = !project.connector_removals.is_empty() || !project.gateway_rule_removals.is_empty();
        if selection.is_some() && removes {
            let message = "a project with lifecycle removals cannot be applied in part";
            return Err(Diagnostic::new(Code::E418ReviewedPlanRequired, message)
                .suggest("save a plan with `streamt plan --out FILE` and apply it"));
        }
        Ok(selection)
    }

    fn among(
        models: &[(&str, &[String])],
        dag: &Dag,
        target: Option<&str>,
        select: Option<&str>,
    ) -> Result<Option<Self>, Diagnostic> {
        let targeted = match target {
            None => None,
            Some(name) if models.iter().any(|(model, _)| *model == name) => Some(upstream_models(dag, [name])),
            Some(name) => {
                let known = models.iter().map(|(model, _)| *model);
                return Err(Diagnostic::new(Code::E102ModelNotFound, format!("model '{name}' not found"))
                    .suggest_opt(hint(name, "model", known)));
            }
        };
        let tagged = match select {
            None => None,
            Some(expression) => {
                let tag = expression.strip_prefix("tag:").filter(|tag| !tag.is_empty());
                let tag = tag.ok_or_else(|| {
                    Diagnostic::new(Code::E902Usage, format!("'{expression}' is not a selection"))
                        .suggest("write `--select tag:<name>`")
                })?;
                let carrying = models.iter().filter(|(_, tags)| tags.iter().any(|t| t == tag)).map(|(model, _)| *model);
                Some(upstream_models(dag, carrying))
            }
        };
        let selected: BTreeSet<&str> = match (targeted, tagged) {
            (None, None) => return Ok(None),
            (Some(one), None) | (None, Some(one)) => one,
            (Some(one), Some(other)) => one.intersection(&other).copied().collect(),
        };
        if selected.is_empty() {
            return Err(Diagnostic::new(Code::E208MissingConfig, "the selection holds no model")
                .suggest("`streamt list models` shows the models and their tags"));
        }
        let inputs = selected.iter().filter_map(|model| dag.nodes.get(*model)).flat_map(|node| &node.upstream);
        let sources = inputs.filter(|name| dag.nodes.get(*name).is_some_and(|n| n.node_type == NodeType::Source));
        Ok(Some(Self {
            models: selected.iter().map(|model| (*model).to_owned()).collect(),
            sources: sources.cloned().collect(),
        }))
    }

    /// Whether an artifact of this owner stays in a selected plan. External ones always do, so that collisions are seen.
    pub fn keeps(&self, ownership: &Ownership) -> bool {
        ownership.mode == OwnershipMode::External || self.names(&ownership.name)
    }

    pub(super) fn names(&self, owner: &str) -> bool {
        self.models.contains(owner) || self.sources.contains(owner)
    }
}

/// The given models and every model upstream of them.
fn upstream_models<'a>(dag: &'a Dag, start: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut open: Vec<&str> = start.into_iter().collect();
    let mut seen: BTreeSet<&str> = open.iter().copied().collect();
    while let Some(name) = open.pop() {
        let upstream = dag.nodes.get(name).map_or(&[][..], |node| node.upstream.as_slice());
        open.extend(upstream.iter().map(String::as_str).filter(|name| seen.insert(name)));
    }
    seen.retain(|name| dag.nodes.get(*name).is_none_or(|node| node.node_type == NodeType::Model));
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::fixtures::dag;

    fn select(target: Option<&str>, expression: Option<&str>) -> Result<Option<Selection>, Diagnostic> {
        let gold = ["gold".to_owned()];
        let models: [(&str, &[String]); 4] = [("a", &[]), ("b", &[]), ("c", &gold), ("d", &gold)];
        let dag = dag(
            &[
                ("s", "source"),
                ("t", "source"),
                ("a", "model"),
                ("b", "model"),
                ("c", "model"),
                ("d", "model"),
                ("e", "exposure"),
            ],
            &[("s", "a"), ("a", "b"), ("t", "c"), ("b", "d"), ("a", "e")],
        );
        Selection::among(&models, &dag, target, expression)
    }

    fn selection(models: &[&str], sources: &[&str]) -> Selection {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Selection { models: owned(models), sources: owned(sources) }
    }

    /// LIM-008
    #[test]
    fn a_project_with_removals_is_never_applied_in_part() {
        use crate::compiler::testing;
        let mut project = testing::project("shop");
        project.models.push(testing::model("orders"));
        project.connector_removals.push(crate::project::model::ConnectorRemoval {
            logical_owner: "old".into(),
            name: "old-sink".into(),
            cluster: "main".into(),
            origin: Default::default(),
        });
        let compiled = testing::compiled(project);
        let refused = Selection::resolve(&compiled, Some("orders"), None).unwrap_err();
        assert_eq!(refused.code, Code::E418ReviewedPlanRequired);
        assert_eq!(Selection::resolve(&compiled, None, None), Ok(None));
    }

    /// SAF-005
    #[test]
    fn a_target_brings_its_upstream_models_and_their_sources() {
        assert_eq!(select(Some("b"), None), Ok(Some(selection(&["a", "b"], &["s"]))));
        assert_eq!(select(Some("a"), None), Ok(Some(selection(&["a"], &["s"]))));
    }

    /// SAF-005
    #[test]
    fn a_tag_brings_every_carrier_and_its_upstream() {
        assert_eq!(select(None, Some("tag:gold")), Ok(Some(selection(&["a", "b", "c", "d"], &["s", "t"]))));
    }

    #[test]
    fn target_and_tag_are_intersected() {
        assert_eq!(select(Some("b"), Some("tag:gold")), Ok(Some(selection(&["a", "b"], &["s"]))));
        assert_eq!(select(Some("c"), Some("tag:gold")), Ok(Some(selection(&["c"], &["t"]))));
    }

    #[test]
    fn nothing_asked_for_selects_nothing_away() {
        assert_eq!(select(None, None), Ok(None));
    }

    #[test]
    fn a_selection_that_cannot_be_meant_is_refused() {
        let code = |target, expression| select(target, expression).unwrap_err().code;
        assert_eq!(code(Some("bb"), None), Code::E102ModelNotFound);
        assert_eq!(code(None, Some("tag:silver")), Code::E208MissingConfig);
        assert_eq!(code(None, Some("tag:")), Code::E902Usage);
        assert_eq!(code(None, Some("gold")), Code::E902Usage);
    }
}
