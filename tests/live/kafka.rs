//! Topics on a real Apache Kafka broker.

use streamt::codes::Code;
use streamt::compiler::artifact::TopicArtifact;
use streamt::planner::observation::{EvidenceStatus, TopicObservation};
use streamt::providers::kafka::{ConfigRead, CreatedTopic, Groups, OffsetAt, TopicUpdate};
use streamt::providers::{Identity, KafkaClient, ProviderFailure};

use crate::support::{Open, clean_up, ctx, kafka, topic, unique, variable};

async fn observe(kafka: &KafkaClient, name: &str) -> TopicObservation {
    let observed = kafka.observe_topics(&ctx(), &[name.to_owned()], ConfigRead::Strict).await;
    observed.expect("an observation").remove(name).expect("the topic asked for")
}

async fn create(kafka: &KafkaClient, topic: &TopicArtifact) -> Result<CreatedTopic, ProviderFailure> {
    let mut outcome = kafka.create_topics(&ctx(), &Open, std::slice::from_ref(topic)).await;
    outcome.pop().expect("one outcome").1
}

fn exactly(topic: &TopicArtifact) -> TopicObservation {
    TopicObservation {
        name: topic.name.clone(),
        exists: true,
        partitions: Some(topic.partitions),
        replication_factor: Some(topic.replication_factor),
        config: topic.config.clone(),
    }
}

#[tokio::test]
async fn a_created_topic_is_observed_exactly_as_declared() {
    let (kafka, name) = (kafka().await, unique("create"));
    assert_eq!(observe(&kafka, &name).await, TopicObservation::absent(&name));
    let declared = topic(&name, 3, &[("retention.ms", "86400000"), ("cleanup.policy", "compact,delete")]);
    let created = create(&kafka, &declared).await.expect("created");
    assert_eq!(created.topic_id.as_ref().map(String::len), Some(22));
    assert_eq!(observe(&kafka, &name).await, exactly(&declared));
    let ids = kafka.topic_ids(&ctx(), &[name.clone(), unique("absent")]).await.expect("ids");
    assert_eq!(ids.into_iter().collect::<Vec<_>>(), [(name.clone(), created.topic_id.expect("an id"))]);
    assert!(kafka.list_topics(&ctx()).await.expect("names").contains(&name));
    let bare = kafka.observe_topics(&ctx(), std::slice::from_ref(&name), ConfigRead::None).await.expect("metadata");
    assert!(bare[&name].exists && bare[&name].config.is_empty());
    let again = create(&kafka, &declared).await;
    let again = again.expect_err("a topic is created once");
    assert!(matches!(again, ProviderFailure::Rejected { .. }) && again.outdates_the_plan(), "{again:?}");
    clean_up([name]).await;
}

/// KSC-014, KSC-015
#[tokio::test]
async fn an_update_grows_partitions_sets_and_deletes_overrides_and_converges() {
    let (kafka, name) = (kafka().await, unique("update"));
    let before = topic(&name, 1, &[("retention.ms", "1000"), ("segment.ms", "5000"), ("max.message.bytes", "4096")]);
    create(&kafka, &before).await.expect("created");
    let desired =
        topic(&name, 4, &[("retention.ms", "2000"), ("max.message.bytes", "4096"), ("cleanup.policy", "compact")]);
    let update = TopicUpdate { current: observe(&kafka, &name).await, desired: desired.clone() };
    assert_eq!(kafka.validate_topics(&ctx(), &[], std::slice::from_ref(&update)).await, Ok(vec![]));
    let updated = kafka.update_topic(&ctx(), &Open, &update).await.expect("updated");
    assert_eq!(updated.partitions, Some(4));
    assert_eq!(updated.set, ["cleanup.policy", "retention.ms"]);
    assert_eq!(updated.deleted, ["segment.ms"]);
    assert_eq!(observe(&kafka, &name).await, exactly(&desired));

    // The topic is no longer what the first plan was made against.
    let stale = kafka.update_topic(&ctx(), &Open, &update).await;
    assert!(matches!(stale, Err(ProviderFailure::Conflict { .. })), "{stale:?}");
    let fewer = TopicUpdate { current: observe(&kafka, &name).await, desired: topic(&name, 2, &[]) };
    let refused = kafka.update_topic(&ctx(), &Open, &fewer).await.expect_err("fewer partitions");
    assert_eq!(refused.code(), Code::E401CannotReducePartitions);
    assert_eq!(observe(&kafka, &name).await, exactly(&desired));
    clean_up([name]).await;
}

#[tokio::test]
async fn what_the_broker_refuses_is_told_in_its_own_words_before_and_during_the_change() {
    let (kafka, name) = (kafka().await, unique("refused"));
    let unknown = topic(&name, 1, &[("retention.msx", "1")]);
    let refusals = kafka.validate_topics(&ctx(), std::slice::from_ref(&unknown), &[]).await.expect("asked");
    let [(Identity::Topic(refused), failure)] = &refusals[..] else { panic!("{refusals:?}") };
    assert_eq!(refused, &name);
    let message = failure.diagnostic("topic:t: create").message;
    assert!(message.contains("(INVALID_CONFIG): Unknown topic config name: retention.msx"), "{message}");
    let failure = create(&kafka, &unknown).await.expect_err("refused");
    assert!(!failure.may_have_effect());
    assert!(failure.diagnostic("x").message.contains("Unknown topic config name: retention.msx"));

    let mut replicated = topic(&name, 1, &[]);
    replicated.replication_factor = 7;
    let failure = create(&kafka, &replicated).await.expect_err("refused");
    let message = failure.diagnostic("x").message;
    assert!(message.contains("INVALID_REPLICATION_FACTOR"), "{message}");

    let bad_value = topic(&name, 1, &[("retention.ms", "soon")]);
    let message = create(&kafka, &bad_value).await.expect_err("refused").diagnostic("x").message;
    assert!(message.contains("retention.ms"), "{message}");
    assert!(!observe(&kafka, &name).await.exists);
}

#[tokio::test]
async fn an_update_that_would_be_refused_is_found_by_validation_and_changes_nothing() {
    let (kafka, name) = (kafka().await, unique("invalid"));
    let before = topic(&name, 2, &[]);
    create(&kafka, &before).await.expect("created");
    let update = TopicUpdate { current: exactly(&before), desired: topic(&name, 3, &[("retention.ms", "soon")]) };
    let refusals = kafka.validate_topics(&ctx(), &[], std::slice::from_ref(&update)).await.expect("asked");
    assert_eq!(refusals.len(), 1);
    assert_eq!(observe(&kafka, &name).await, exactly(&before));

    let partial = kafka.update_topic(&ctx(), &Open, &update).await.expect_err("refused config");
    assert!(matches!(&partial, ProviderFailure::Partial { failed: "configs", .. }), "{partial:?}");
    assert!(partial.diagnostic("x").message.contains("retention.ms"));
    assert_eq!(observe(&kafka, &name).await, exactly(&topic(&name, 3, &[])));
    clean_up([name]).await;
}

#[tokio::test]
async fn one_refused_member_of_a_group_leaves_the_others_created() {
    const MEMBERS: usize = 256;
    let (kafka, stem) = (kafka().await, unique("group"));
    let names: Vec<String> = (0..MEMBERS).map(|number| format!("{stem}-{number:03}")).collect();
    let mut topics: Vec<TopicArtifact> = names.iter().map(|name| topic(name, 1, &[("retention.ms", "1000")])).collect();
    topics[100].config.insert("retention.msx".to_owned(), "1".to_owned());
    let outcomes = kafka.create_topics(&ctx(), &Open, &topics).await;
    assert_eq!(outcomes.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(), names);
    for (number, (name, outcome)) in outcomes.iter().enumerate() {
        assert_eq!(outcome.is_ok(), number != 100, "{name}: {outcome:?}");
    }
    assert!(matches!(outcomes[100].1, Err(ProviderFailure::Rejected { .. })));
    let observed = kafka.observe_topics(&ctx(), &names, ConfigRead::Strict).await.expect("observed");
    assert_eq!(observed.values().filter(|topic| topic.exists).count(), MEMBERS - 1);
    clean_up(names).await;
}

/// A controller writes at most 10 000 records for one request.
#[tokio::test]
async fn creates_with_more_partitions_than_one_request_may_write_are_asked_for_in_several() {
    let (kafka, stem) = (kafka().await, unique("large"));
    let topics: Vec<TopicArtifact> = (0..300).map(|number| topic(&format!("{stem}-{number}"), 40, &[])).collect();
    assert_eq!(kafka.validate_topics(&ctx(), &topics, &[]).await, Ok(vec![]));
    let alone = topic(&stem, 10_001, &[]);
    let refused = kafka.validate_topics(&ctx(), std::slice::from_ref(&alone), &[]).await.expect("asked");
    assert!(matches!(refused.as_slice(), [(_, ProviderFailure::Rejected { .. })]), "{refused:?}");
}

#[tokio::test]
async fn the_lag_of_a_group_is_what_it_has_not_committed() {
    use krafka::admin::{AlterConsumerGroupOffsetsOptions, TopicPartition};
    let (kafka, name, group) = (kafka().await, unique("lag"), unique("group"));
    create(&kafka, &topic(&name, 1, &[])).await.expect("created");
    let raw = krafka::Kafka::builder(variable("STREAMT_TEST_KAFKA")).connect().await.expect("Kafka answers");
    let producer = raw.producer().build().await.expect("a producer");
    for _ in 0..5 {
        let sent = producer.send(krafka::Record::new(&name, "value")).await.expect("sent");
        assert_eq!(sent.partition, 0);
    }
    raw.admin()
        .alter_consumer_group_offsets(
            &group,
            [(TopicPartition::new(name.clone(), 0), 2)],
            AlterConsumerGroupOffsetsOptions::default(),
        )
        .await
        .expect("committed");

    let evidence = kafka.consumer_lag(&ctx(), std::slice::from_ref(&name), &Groups::All).await;
    assert_eq!(evidence.status, EvidenceStatus::Verified, "{evidence:?}");
    let lags: Vec<(&str, u64)> = evidence.groups[&name].iter().map(|lag| (lag.group_id.as_str(), lag.lag)).collect();
    assert_eq!(lags, [(group.as_str(), 3)]);

    let at = evidence.groups[&name][0].partitions[0];
    assert_eq!((at.partition, at.committed, at.end, at.lag()), (0, 2, Some(5), Some(3)));

    let unconsumed = unique("unconsumed");
    let evidence = kafka.consumer_lag(&ctx(), std::slice::from_ref(&unconsumed), &Groups::List(vec![group])).await;
    assert_eq!(evidence.groups[&unconsumed], []);
    clean_up([name]).await;
}

#[tokio::test]
async fn offsets_are_read_at_both_ends_and_what_does_not_exist_is_told_apart() {
    use krafka::admin::{DeleteRecordsOptions, TopicPartition};
    let (kafka, name, absent) = (kafka().await, unique("offsets"), unique("absent"));
    create(&kafka, &topic(&name, 2, &[])).await.expect("created");
    let raw = krafka::Kafka::builder(variable("STREAMT_TEST_KAFKA")).connect().await.expect("Kafka answers");
    let producer = raw.producer().build().await.expect("a producer");
    for _ in 0..4 {
        let _ = producer.send(krafka::Record::new(&name, "value").partition(1)).await.expect("sent");
    }
    let before = [(TopicPartition::new(name.clone(), 1), 3)];
    raw.admin().delete_records(before, DeleteRecordsOptions::default()).await.expect("deleted");
    let partitions = [(name.clone(), 0), (name.clone(), 1), (absent.clone(), 0)].into();
    for (at, expected) in [(OffsetAt::Beginning, [0, 3]), (OffsetAt::End, [0, 4])] {
        let offsets = kafka.offsets(&ctx(), &partitions, at).await.expect("read");
        let found: Vec<i64> = (0..2).map(|number| *offsets[&(name.clone(), number)].as_ref().expect("there")).collect();
        assert_eq!(found, expected, "{at:?}");
        assert_eq!(offsets[&(absent.clone(), 0)], Err(ProviderFailure::NotFound));
    }
    clean_up([name]).await;
}
