//! What an operation does, as log records: its boundaries at info, the rest at debug. No record holds an endpoint or a
//! configuration value.

use std::time::Duration;

use crate::messages::operation::OperationEvent;
use crate::state::model::StateAddress;

pub(super) fn event(address: &StateAddress, event: &OperationEvent) {
    match event {
        OperationEvent::WaitingForLock { remaining } => {
            tracing::info!(%address, remaining_s = remaining.as_secs(), "waits for the lock of another operation");
        }
        OperationEvent::Locked => tracing::info!(%address, "lock taken"),
        OperationEvent::Observing { provider, resources } => {
            tracing::debug!(provider = provider.as_str(), resources, "observes");
        }
        OperationEvent::Planned { actions } => tracing::info!(actions, "planned"),
        OperationEvent::Validating => tracing::debug!("asks the broker whether it would accept the changes"),
        OperationEvent::Began { operation_id, actions } => {
            tracing::info!(%address, %operation_id, actions, "operation begun: its intent is durable");
        }
        OperationEvent::ActionStarted { index, total, label, verb } => {
            tracing::info!(action = index + 1, total, verb = verb.as_str(), resource = %label, "action started");
        }
        OperationEvent::ActionFinished { index, total, label, verb, succeeded: true, elapsed } => {
            let ms = millis(*elapsed);
            tracing::info!(action = index + 1, total, verb = verb.as_str(), resource = %label, ms, "action completed");
        }
        OperationEvent::ActionFinished { index, total, label, verb, succeeded: false, elapsed } => {
            let ms = millis(*elapsed);
            tracing::warn!(action = index + 1, total, verb = verb.as_str(), resource = %label, ms, "action failed");
        }
        OperationEvent::RecoveryRequired { operation_id } => {
            tracing::warn!(%address, %operation_id, "operation waits for recovery: the marker is durable");
        }
        OperationEvent::Committed { operation_id, state_serial } => {
            tracing::info!(%address, %operation_id, state_serial, "operation committed");
        }
        OperationEvent::Released => tracing::info!(%address, "lock released"),
    }
}

fn millis(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}
