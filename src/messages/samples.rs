//! What a command that tests records asks for.

use crate::assertions::{Sample, WriterSchemas};
use crate::codes::Diagnostic;

/// Records of one topic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SampleRequest {
    pub topic: String,
    pub limit: usize,
    /// Other servers than those of the project's cluster, for a topic that exists behind a proxy only.
    pub servers: Option<String>,
}

/// The records and the schemas that they name, or why there are none.
pub type SampleAnswer = Result<(Sample, WriterSchemas), Box<Diagnostic>>;
