//! Schemas that reference other subjects.

use super::*;

/// The user `a-value` sorts before the subject that it references.
pub(super) fn chain(live: bool) -> World {
    let mut user = schema("a-value", text("user"));
    user.references = vec![reference("z-value", 2)];
    let of = |subject| live.then(|| live_schema(subject, 1, text("old")));
    World::new()
        .with_schema(user, of("a-value"))
        .with_schema(schema("z-value", text("base")), of("z-value"))
        .owned()
        .next_version("z-value", 2)
}

#[test]
fn a_referenced_subject_is_registered_before_its_user() {
    for live in [true, false] {
        let order: Vec<String> = chain(live).plan().changes.iter().map(|change| change.name.clone()).collect();
        assert_eq!(order, ["z-value", "a-value"]);
    }
}

#[test]
fn a_user_of_a_pending_version_is_unproven_and_checked_first() {
    let world = chain(true);
    assert_eq!(compatibility_checks(&world.desired(), None, &world.observations), ["z-value"]);
    let plan = world.plan();
    let crate::planner::model::Diff::Schema(user) = &plan.changes[1].diff else { panic!("a schema") };
    assert!(user.check_first());
    let crate::planner::model::Diff::Schema(base) = &plan.changes[0].diff else { panic!("a schema") };
    assert_eq!(base.planned_version, Some(2));
    assert_eq!(plan.changes[1].changes["schema"]["compatible"], Value::Null);
}

#[test]
fn a_reference_that_nothing_provides_is_refused() {
    let world = chain(true).next_version("z-value", 3);
    let errors = world.try_plan().unwrap_err().into_vec();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].code, Code::E213SchemaRegistryResolutionFailed);
    assert_eq!(
        errors[0].message,
        "subject 'a-value' references version 2 of 'z-value', which neither exists nor is created by this plan"
    );
    assert_eq!(
        errors[0].suggestion.as_deref(),
        Some("this plan would create version 3 of 'z-value': reference that one")
    );
}

/// SAF-005
#[test]
fn a_version_that_is_created_outside_the_selection_is_not_created_by_this_plan() {
    let mut world = chain(true);
    world.selection = Some(Selection { models: ["a".to_owned()].into(), sources: Default::default() });
    let errors = world.try_plan().unwrap_err().into_vec();
    assert_eq!(errors[0].code, Code::E213SchemaRegistryResolutionFailed);
    assert_eq!(
        errors[0].suggestion.as_deref(),
        Some("'z-value' is declared by 'z', outside the selection: apply that first, or everything")
    );
}
