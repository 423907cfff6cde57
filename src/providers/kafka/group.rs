//! How many topics one create request carries.

use crate::compiler::artifact::TopicArtifact;

/// Topics of one create request, and of one validating request.
pub const MAX_TOPICS: usize = 1000;
/// A controller in KRaft mode refuses a request that would write more than 10 000 records (`MAX_RECORDS_PER_USER_OP`): one for
/// the topic, one for each of its partitions, one for each of its configs. What is left is room for what it adds itself.
const MAX_RECORDS: usize = 9000;

/// A create request that is being filled.
#[derive(Clone, Copy, Debug)]
pub struct CreateRequest {
    topics: usize,
    records: usize,
}

impl CreateRequest {
    /// A request for this topic, whatever its size: the broker judges one that exceeds the bound alone.
    pub fn of(topic: &TopicArtifact) -> Self {
        Self { topics: 1, records: records(topic) }
    }

    /// Takes one more topic if it fits.
    pub fn takes(&mut self, topic: &TopicArtifact) -> bool {
        let records = self.records.saturating_add(records(topic));
        let fits = self.topics < MAX_TOPICS && records <= MAX_RECORDS;
        if fits {
            *self = Self { topics: self.topics + 1, records };
        }
        fits
    }

    /// The topics in order, cut into requests.
    pub fn split(mut topics: &[TopicArtifact]) -> impl Iterator<Item = &[TopicArtifact]> {
        std::iter::from_fn(move || {
            let mut request = Self::of(topics.first()?);
            let taken = 1 + topics[1..].iter().take_while(|topic| request.takes(topic)).count();
            let (group, rest) = topics.split_at(taken);
            topics = rest;
            Some(group)
        })
    }
}

fn records(topic: &TopicArtifact) -> usize {
    usize::try_from(topic.partitions).unwrap_or(usize::MAX).saturating_add(1 + topic.config.len())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::compiler::artifact::{OwnerType, Ownership};
    use crate::project::model::OwnershipMode;

    fn topics(count: usize, partitions: u32, configs: usize) -> Vec<TopicArtifact> {
        let topic = |name: String| TopicArtifact {
            partitions,
            replication_factor: 1,
            config: (0..configs).map(|index| (format!("c{index}"), String::new())).collect::<BTreeMap<_, _>>(),
            ownership: Ownership {
                mode: OwnershipMode::Managed,
                project: "p".into(),
                owner_type: OwnerType::Model,
                name: name.clone(),
            },
            name,
        };
        (0..count).map(|index| topic(format!("t{index}"))).collect()
    }

    fn sizes(topics: &[TopicArtifact]) -> Vec<usize> {
        CreateRequest::split(topics).map(<[TopicArtifact]>::len).collect()
    }

    #[test]
    fn a_request_is_bounded_by_its_topics() {
        assert_eq!(sizes(&topics(0, 1, 0)), [0; 0]);
        assert_eq!(sizes(&topics(1000, 3, 2)), [1000]);
        assert_eq!(sizes(&topics(2001, 1, 0)), [1000, 1000, 1]);
    }

    #[test]
    fn a_request_is_bounded_by_what_the_controller_writes_for_it() {
        assert_eq!(sizes(&topics(300, 40, 4)), [200, 100]);
        assert_eq!(sizes(&topics(3, 20_000, 0)), [1, 1, 1]);
        assert_eq!(sizes(&topics(2, u32::MAX, 0)), [1, 1]);
    }
}
