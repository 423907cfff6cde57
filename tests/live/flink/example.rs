//! The example with SQL models, as its README tells a reader to run it.

use serde_json::{Value, json};

use super::cluster::{Place, service};
use super::yard::{consume, create, produce};
use crate::estate::blocking;
use crate::harness::Workspace;
use crate::support::{clean_up, example, variable};

const MODELS: [&str; 3] = ["paid_orders", "revenue_by_minute", "customer_totals"];

struct Orders {
    place: Place,
    workspace: Workspace,
    own: String,
}

impl Orders {
    fn new() -> Self {
        let place = Place::shared();
        let own = format!("o{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
        let flavour = if service() == "flink-1" { "plain" } else { "sql" };
        let workspace = Workspace::new()
            .variable("KAFKA_BOOTSTRAP_SERVERS", &variable("STREAMT_TEST_KAFKA"))
            .variable("FLINK_REST_URL", &place.rest)
            .variable("FLINK_SQL_GATEWAY_URL", &place.gateway)
            .variable("FLINK_KAFKA_CONNECTOR", flavour);
        let orders = Self { place, workspace, own };
        let names = MODELS.map(|model| (model, orders.job(model)));
        let prefix = format!("{}-acme-", orders.own);
        let mut words: Vec<(&str, &str)> = names.iter().map(|(model, job)| (*model, job.as_str())).collect();
        words.push(("acme-", &prefix));
        example("orders", &orders.workspace, &words);
        orders
    }

    fn job(&self, model: &str) -> String {
        format!("{}_{model}", self.own)
    }

    fn topic(&self, name: &str) -> String {
        format!("{}-acme-orders.{name}.v1", self.own)
    }

    fn read(&self, topic: &str, wanted: usize) -> Vec<Value> {
        let values = blocking(consume(self.topic(topic), wanted));
        values.iter().map(|value| serde_json::from_str(value).expect("JSON")).collect()
    }
}

/// EXP-002
#[test]
fn the_orders_example_runs_on_flink_and_gives_what_its_readme_says() {
    let orders = Orders::new();
    let workspace = &orders.workspace;
    let all = workspace.run("validate --strict --all-envs -o json").exits(0);
    assert_eq!((&all.json()["data"]["all_valid"], all.warning_codes().len()), (&json!(true), 0), "{}", all.stdout);
    blocking(create(orders.topic("orders")));
    let applied = workspace.run("apply -e dev -o json").exits(0).json();
    assert_eq!(applied["data"]["created"].as_array().map(Vec::len), Some(6), "{applied}");
    for model in MODELS {
        orders.place.running(&orders.job(model));
    }
    workspace.run("plan -e dev --detailed-exitcode").exits(0);

    let readme = std::fs::read_to_string(workspace.path("README.md")).expect("a README");
    let records: Vec<&str> = readme.lines().map(str::trim).filter(|line| line.starts_with(r#"{"order_id""#)).collect();
    assert_eq!(records.len(), 4);
    for record in records {
        blocking(produce(orders.topic("orders"), record.to_owned()));
    }
    let paid = orders.read("paid", 3);
    assert_eq!((&paid[0]["order_id"], &paid[0]["product"]), (&json!("1"), &json!("TEA")), "{paid:?}");
    let revenue = orders.read("revenue", 1);
    let minute = ("2026-01-01 10:00:00", "2026-01-01 10:01:00");
    assert_eq!(
        revenue,
        [
            json!({"window_start": minute.0, "window_end": minute.1, "product": "TEA", "orders": 2, "revenue_cents": 500})
        ]
    );
    let totals = orders.read("totals", 3);
    let of = |customer: &str| totals.iter().rev().find(|total| total["customer"] == customer).expect("a total");
    assert_eq!(of("ada"), &json!({"customer": "ada", "orders": 2, "total_cents": 1200}));
    assert_eq!(of("bob"), &json!({"customer": "bob", "orders": 1, "total_cents": 200}));

    let tested = workspace.run("test -e dev -o json").exits(0).json();
    assert_eq!(tested["data"]["passed"], 2, "{tested}");
    workspace.run("status -e dev --health").exits(0);
}

impl Drop for Orders {
    fn drop(&mut self) {
        for model in MODELS {
            let cancel = std::panic::AssertUnwindSafe(|| self.place.cancel(&self.job(model)));
            let _ = std::panic::catch_unwind(cancel);
        }
        blocking(clean_up(["orders", "paid", "revenue", "totals"].map(|name| self.topic(name))));
    }
}
