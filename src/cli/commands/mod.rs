//! The commands.

pub mod apply;
pub mod build;
pub mod compile;
pub mod completion;
mod connector_rows;
pub mod diff;
pub mod docs_schema;
pub mod envs;
pub mod explain;
pub mod init;
pub mod lineage;
mod lineage_columns;
pub mod list;
pub mod man;
pub mod plan;
pub mod review;
pub mod show;
pub mod state_init;
pub mod state_lock_status;
pub mod state_migrate;
pub mod state_recovery;
pub mod state_status;
pub mod status;
pub mod test;
mod test_junit;
pub mod validate;
pub mod version;
