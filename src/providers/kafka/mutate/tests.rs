//! Against an in-process stand-in that speaks the Kafka protocol, for faults that no real broker can be asked for.

use krafka::error::ErrorCode;
use krafka::testing::{ApiKey, Control, FakeBroker};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::compiler::artifact::{OwnerType, Ownership};
use crate::project::model::{KafkaRuntime, OwnershipMode};
use crate::providers::Purpose;
use crate::providers::guard::testing::HandGuard;

fn artifact(name: &str) -> TopicArtifact {
    TopicArtifact {
        name: name.to_owned(),
        partitions: 1,
        replication_factor: 1,
        config: BTreeMap::new(),
        ownership: Ownership {
            mode: OwnershipMode::Managed,
            project: "shop".to_owned(),
            owner_type: OwnerType::Model,
            name: name.to_owned(),
        },
    }
}

fn context() -> Ctx {
    Ctx::new(Purpose::Apply, Duration::from_secs(5), CancellationToken::new())
}

async fn client(broker: &FakeBroker) -> KafkaClient {
    let runtime = KafkaRuntime::plain(broker.bootstrap_servers());
    KafkaClient::connect(&runtime, std::path::Path::new("/"), &context()).await.expect("the stand-in answers")
}

async fn created(kafka: &KafkaClient, guard: &HandGuard, names: &[&str]) -> Vec<Result<CreatedTopic, ProviderFailure>> {
    let topics: Vec<TopicArtifact> = names.iter().map(|name| artifact(name)).collect();
    kafka.create_topics(&context(), guard, &topics).await.into_iter().map(|(_, outcome)| outcome).collect()
}

fn uncertain(name: &str) -> Result<CreatedTopic, ProviderFailure> {
    Err(unanswered("create", name))
}

#[tokio::test]
async fn a_write_whose_connection_breaks_is_uncertain_and_never_sent_again() {
    let broker = FakeBroker::start().await.expect("a stand-in");
    broker.on(ApiKey::CreateTopics, |_| Control::ApplyThen(Box::new(Control::Disconnect)));
    let kafka = client(&broker).await;
    assert_eq!(created(&kafka, &HandGuard::default(), &["a"]).await, [uncertain("a")]);
    assert_eq!(broker.request_count(ApiKey::CreateTopics), 1);
}

#[tokio::test]
async fn an_unanswered_write_is_uncertain_for_every_member_and_never_sent_again() {
    let broker = FakeBroker::start().await.expect("a stand-in");
    broker.on(ApiKey::CreateTopics, |_| Control::Silence);
    let kafka = client(&broker).await;
    let ctx = Ctx::new(Purpose::Apply, Duration::from_millis(600), CancellationToken::new());
    let outcome = kafka.create_topics(&ctx, &HandGuard::default(), &[artifact("a"), artifact("b")]).await;
    let outcome: Vec<_> = outcome.into_iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(outcome, [uncertain("a"), uncertain("b")]);
    assert_eq!(broker.request_count(ApiKey::CreateTopics), 1);
}

#[tokio::test]
async fn a_broker_that_gave_up_waiting_leaves_the_outcome_uncertain() {
    let broker = FakeBroker::start().await.expect("a stand-in");
    broker.on(ApiKey::CreateTopics, |_| Control::ApplyThen(Box::new(Control::Error(ErrorCode::RequestTimedOut))));
    let kafka = client(&broker).await;
    assert_eq!(created(&kafka, &HandGuard::default(), &["a"]).await, [uncertain("a")]);
    assert_eq!(broker.request_count(ApiKey::CreateTopics), 1);
}

#[tokio::test]
async fn a_moved_controller_is_found_and_the_write_sent_again() {
    let broker = FakeBroker::start().await.expect("a stand-in");
    broker.on_once(ApiKey::CreateTopics, |_| Control::Error(ErrorCode::NotController));
    let kafka = client(&broker).await;
    let outcome = created(&kafka, &HandGuard::default(), &["a"]).await;
    assert!(matches!(outcome[..], [Ok(_)]), "{outcome:?}");
    assert_eq!(broker.request_count(ApiKey::CreateTopics), 2);
}

#[tokio::test]
async fn a_guard_lost_between_two_sends_lets_no_second_one_start() {
    let broker = FakeBroker::start().await.expect("a stand-in");
    let guard = HandGuard::default();
    let closer = guard.clone();
    broker.on(ApiKey::CreateTopics, move |_| {
        closer.0.cancel();
        Control::Error(ErrorCode::NotController)
    });
    let kafka = client(&broker).await;
    let outcome = created(&kafka, &guard, &["a"]).await;
    assert_eq!(outcome, [Err(ProviderFailure::Aborted { uncertain: true })]);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(broker.request_count(ApiKey::CreateTopics), 1);
}

#[tokio::test]
async fn a_guard_lost_before_the_write_sends_nothing() {
    let broker = FakeBroker::start().await.expect("a stand-in");
    let kafka = client(&broker).await;
    let guard = HandGuard::default();
    guard.0.cancel();
    let outcome = created(&kafka, &guard, &["a"]).await;
    assert_eq!(outcome, [Err(ProviderFailure::Aborted { uncertain: false })]);
    assert_eq!(broker.request_count(ApiKey::CreateTopics), 0);
}

#[tokio::test]
async fn a_stop_before_the_write_sends_nothing() {
    let broker = FakeBroker::start().await.expect("a stand-in");
    let kafka = client(&broker).await;
    let ctx = context();
    ctx.cancel.cancel();
    let outcome = kafka.create_topics(&ctx, &HandGuard::default(), &[artifact("a")]).await;
    assert_eq!(outcome, [("a".to_owned(), Err(ProviderFailure::Aborted { uncertain: false }))]);
    assert_eq!(broker.request_count(ApiKey::CreateTopics), 0);
}

#[tokio::test]
async fn a_member_that_exists_is_refused_and_the_others_stay_created() {
    let broker = FakeBroker::start().await.expect("a stand-in");
    let kafka = client(&broker).await;
    let guard = HandGuard::default();
    assert!(matches!(created(&kafka, &guard, &["b"]).await[..], [Ok(_)]));
    let outcome = created(&kafka, &guard, &["a", "b", "c"]).await;
    let [Ok(_), Err(refused @ ProviderFailure::Rejected { .. }), Ok(_)] = &outcome[..] else { panic!("{outcome:?}") };
    assert!(refused.outdates_the_plan() && !refused.may_have_effect());
    assert!(refused.to_string().starts_with("refused (TOPIC_ALREADY_EXISTS)"), "{refused}");
    assert_eq!(broker.request_count(ApiKey::DeleteTopics), 0);
}

fn update(current: (u32, &[(&str, &str)]), desired: (u32, &[(&str, &str)])) -> TopicUpdate {
    let config = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    TopicUpdate {
        current: TopicObservation {
            name: "t".to_owned(),
            exists: true,
            partitions: Some(current.0),
            replication_factor: Some(1),
            config: config(current.1),
        },
        desired: TopicArtifact { partitions: desired.0, config: config(desired.1), ..artifact("t") },
    }
}

#[test]
fn only_differences_are_sent_sorted_by_key() {
    let update = update((1, &[("b", "1"), ("c", "1"), ("e", "1")]), (1, &[("a", "2"), ("c", "1"), ("e", "3")]));
    let expected = vec![ConfigOp::set("a", "2"), ConfigOp::delete("b"), ConfigOp::set("e", "3")];
    assert_eq!(ConfigChange::of(&update).operations(), expected);
}

#[test]
fn partitions_are_only_ever_added() {
    assert_eq!(growth(&update((1, &[]), (3, &[]))), Some(("t".to_owned(), 3)));
    assert_eq!(growth(&update((3, &[]), (3, &[]))), None);
    assert_eq!(growth(&update((3, &[]), (1, &[]))), None);
}

#[test]
fn a_live_topic_that_is_not_the_planned_one_stops_the_update() {
    let planned = update((2, &[("a", "1")]), (3, &[("a", "2")]));
    let live = |partitions, config: &[(&str, &str)]| update((partitions, config), (1, &[])).current;
    assert_eq!(preimage(Some(&live(2, &[("a", "1")])), &planned), Ok(()));
    let changed = preimage(Some(&live(2, &[("a", "9")])), &planned);
    assert!(matches!(changed, Err(ProviderFailure::Conflict { .. })));
    let more = preimage(Some(&live(4, &[("a", "1")])), &planned);
    assert_eq!(more, Err(ProviderFailure::CannotReducePartitions { live: 4, desired: 3 }));
    assert_eq!(more.expect_err("too many").code(), crate::codes::Code::E401CannotReducePartitions);
    let gone = TopicObservation::absent("t");
    assert!(matches!(preimage(Some(&gone), &planned), Err(ProviderFailure::Conflict { .. })));
    assert!(matches!(preimage(None, &planned), Err(ProviderFailure::Conflict { .. })));
}

#[tokio::test]
async fn an_update_that_was_told_to_stop_sends_nothing() {
    let broker = FakeBroker::start().await.expect("a stand-in");
    let kafka = client(&broker).await;
    let ctx = context();
    ctx.cancel.cancel();
    let sent = async { panic!("must not be sent") };
    let outcome = kafka.mutate(&ctx, &HandGuard::default(), "configs", "t", sent).await;
    assert_eq!(outcome, Err(ProviderFailure::Aborted { uncertain: false }));
}

#[tokio::test]
async fn a_validation_that_the_broker_could_not_make_is_no_permission() {
    for code in [ErrorCode::RequestTimedOut, ErrorCode::UnknownServerError] {
        let broker = FakeBroker::start().await.expect("a stand-in");
        broker.on(ApiKey::CreateTopics, move |_| Control::Error(code));
        let kafka = client(&broker).await;
        let outcome = kafka.validate_topics(&context(), &[artifact("a")], &[]).await;
        assert!(matches!(outcome, Err(ProviderFailure::Timeout | ProviderFailure::Protocol { .. })), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_broker_without_topic_ids_gives_none() {
    let broker = FakeBroker::start().await.expect("a stand-in");
    assert!(broker.create_topic("a", 1));
    broker.with_state(|state| state.topics.get_mut("a").expect("the topic").topic_id = [0; 16]);
    let kafka = client(&broker).await;
    let outcome = kafka.topic_ids(&context(), &["a".to_owned()]).await;
    assert_eq!(outcome, Err(ProviderFailure::Unsupported { what: "topic ids" }));
}
