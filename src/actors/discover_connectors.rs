//! Discovery of connectors for `import`: one list, and the settings of each class of the sinks in it. Nothing but reads.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::coordinator::answered;
use super::discover::undiscovered;
use super::registry::Registry;
use crate::codes::{Code, Diagnostic};
use crate::messages::connect::{ListConnectors, ValueTypes};
use crate::messages::discover::{ConnectorsRequest, FoundConnectors};
use crate::messages::operation::{Observer, OperationEvent, ProviderKind};
use crate::planner::connector::default_binding;
use crate::providers::connect::Direction;
use crate::providers::{Ctx, ProviderFailure, Purpose};

/// Bound of one whole discovery.
const BUDGET: Duration = Duration::from_secs(300);

/// E205 and E209 without a worker cluster; E701 and the codes of a connection.
pub(super) async fn discover(
    request: ConnectorsRequest,
    registry: &Registry,
    observer: &Observer,
    cancel: CancellationToken,
) -> Result<FoundConnectors, Diagnostic> {
    let ctx = Ctx::new(Purpose::Import, BUDGET, cancel);
    let project = &request.project;
    default_binding(project.runtime.connect.as_ref())?;
    let Some(runtime) = &project.runtime.connect else { return Ok(FoundConnectors::default()) };
    let workers = registry.connect(runtime, &project.root);
    let told = |doing: &str| {
        let doing = format!("Kafka Connect: {doing}");
        move |failure: ProviderFailure| undiscovered(failure.diagnostic(&doing))
    };
    let all = answered(workers.send(ListConnectors { ctx: ctx.clone() }).await).map_err(told("listing connectors"))?;
    let connectors: Vec<_> = all.into_iter().filter(|connector| (request.wanted)(&connector.name)).collect();
    observer(&OperationEvent::Observing { provider: ProviderKind::KafkaConnect, resources: connectors.len() });
    let sinks = connectors
        .iter()
        .filter(|connector| connector.direction == Direction::Sink && !request.known.contains(&connector.name));
    let classes: BTreeSet<&String> = sinks.filter_map(|sink| sink.config.get("connector.class")).collect();
    let mut types = BTreeMap::new();
    for class in classes {
        let message = ValueTypes { ctx: ctx.clone(), class: class.clone() };
        let known = answered(workers.send(message).await).map_err(told("reading the settings of a connector class"))?;
        // Which values are secret is asked of those who know it, or nothing of that class is written down.
        let known = known.ok_or_else(|| {
            let text = format!("Kafka Connect: no worker tells the settings of the class '{class}'");
            Diagnostic::new(Code::E701ImportDiscoveryFailed, text)
                .suggest("leave its connectors out with --exclude, or install the plugin on the workers")
        })?;
        types.insert(class.clone(), known);
    }
    Ok(FoundConnectors { connectors, types })
}
