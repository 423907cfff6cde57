//! A real broker behind a proxy that loses, edits and delays what passes.

use streamt::planner::observation::TopicObservation;
use streamt::providers::kafka::{ConfigRead, TopicUpdate};
use streamt::providers::{KafkaClient, ProviderFailure};

use crate::faults::{Fault, Order, Proxy, first};
use crate::support::{Open, clean_up, ctx, kafka, kafka_at, topic, unique, variable};

struct Between {
    order: Order,
    proxy: Proxy,
    kafka: KafkaClient,
}

impl Between {
    async fn start() -> Self {
        let order = Order::default();
        let proxy = Proxy::kafka(&order, &variable("STREAMT_TEST_KAFKA"));
        let kafka = kafka_at(proxy.address().to_owned()).await;
        Self { order, proxy, kafka }
    }
}

async fn observed(kafka: &KafkaClient, name: &str) -> Result<TopicObservation, ProviderFailure> {
    let names = [name.to_owned()];
    let found = kafka.observe_topics(&ctx(), &names, ConfigRead::Strict).await;
    found.map(|mut all| all.remove(name).expect("the topic asked for"))
}

async fn created(stem: &str, config: &[(&str, &str)]) -> String {
    let name = unique(stem);
    let outcome = kafka().await.create_topics(&ctx(), &Open, &[topic(&name, 1, config)]).await;
    outcome[0].1.as_ref().expect("created");
    name
}

#[tokio::test]
async fn an_update_without_an_answer_is_uncertain_and_is_not_sent_again() {
    for (call, partitions, config) in
        [("CreatePartitions", 3, &[][..]), ("IncrementalAlterConfigs", 1, &[("retention.ms", "1000")][..])]
    {
        let (between, name) = (Between::start().await, created("unanswered", &[]).await);
        let current = observed(&between.kafka, &name).await.expect("observed");
        let update = TopicUpdate { current, desired: topic(&name, partitions, config) };
        let lost = between.proxy.rule(first(move |request| request.mutates && request.what == call), Fault::LoseAnswer);
        let outcome = between.kafka.update_topic(&ctx(), &Open, &update).await;
        assert_eq!(lost.count(), 1, "{call}");
        assert!(matches!(outcome, Err(ProviderFailure::Uncertain { .. })), "{call}: {outcome:?}");
        let sent: Vec<String> = between.order.mutations().into_iter().map(|record| record.what).collect();
        assert_eq!(sent, [call]);
        clean_up([name]).await;
    }
}

/// Brokers hear of a change after the controller has confirmed it: the next observation must not show it as missing.
#[tokio::test]
async fn an_update_is_told_as_done_when_it_can_be_read() {
    let (between, name) = (Between::start().await, created("settled", &[]).await);
    let current = observed(&between.kafka, &name).await.expect("observed");
    let update = TopicUpdate { current, desired: topic(&name, 2, &[("retention.ms", "1000")]) };
    between.kafka.update_topic(&ctx(), &Open, &update).await.expect("updated");
    let records = between.order.records();
    let sent: Vec<&str> = records.iter().map(|record| record.what.as_str()).collect();
    let at = |call: &str| sent.iter().position(|what| *what == call).unwrap_or_else(|| panic!("no {call} in {sent:?}"));
    let (grown, changed) = (at("CreatePartitions"), at("IncrementalAlterConfigs"));
    assert!(sent[grown..changed].contains(&"DescribeConfigs"), "{sent:?}");
    assert!(sent[changed..].contains(&"DescribeConfigs"), "{sent:?}");
    clean_up([name]).await;
}

/// It is looked at again, and never taken for a topic without overrides.
#[tokio::test]
async fn a_topic_that_goes_between_its_metadata_and_its_configuration_is_absent() {
    let (between, name) = (Between::start().await, created("raced", &[("retention.ms", "1000")]).await);
    let gone = name.clone();
    let deletes = Fault::call(move |_| {
        let name = gone.clone();
        let delete = async move {
            clean_up([name.clone()]).await;
            let direct = kafka().await;
            while observed(&direct, &name).await.expect("observed").exists {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        std::thread::spawn(move || runtime.block_on(delete)).join().expect("deleted");
    });
    let met = between.proxy.rule(first(|request| request.what == "DescribeConfigs"), deletes);
    assert_eq!(observed(&between.kafka, &name).await, Ok(TopicObservation::absent(&name)));
    assert_eq!(met.count(), 1);
}

/// An override that nobody may see cannot be compared with a declaration.
#[tokio::test]
async fn an_override_whose_value_is_hidden_fails_the_observation() {
    const VALUE: &[u8] = b"86400123";
    let (between, name) = (Between::start().await, created("hidden", &[("retention.ms", "86400123")]).await);
    let hides = Fault::edit(|mut answer| {
        let at = answer.windows(VALUE.len()).position(|window| window == VALUE).expect("the override");
        // Behind the value: read-only, source, sensitive.
        let [_, source, sensitive] = &mut answer[at + VALUE.len()..at + VALUE.len() + 3] else { panic!("too short") };
        assert_eq!((*source, *sensitive), (1, 0));
        *sensitive = 1;
        answer
    });
    let met = between.proxy.rule(first(|request| request.what == "DescribeConfigs"), hides);
    let outcome = observed(&between.kafka, &name).await;
    assert_eq!(met.count(), 1);
    assert!(matches!(outcome, Err(ProviderFailure::Unreadable { .. })), "{outcome:?}");
    clean_up([name]).await;
}
