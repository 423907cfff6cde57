//! Manifest × ownership × observations → plan. Pure: it decides, it never asks. It promises that no plan deletes because
//! something is absent, that a verb appears only where ownership permits it, and that equal inputs give an equal plan.

pub mod model;
pub mod observation;
