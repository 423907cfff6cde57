//! A second process while the first one works.

use super::site::{Site, code, on_each_major};
use crate::harness::Run;

/// PGS-013: it waits for the lock's time and is told so; it changes nothing, and the first one ends as if alone.
#[test]
fn a_second_apply_is_refused_and_the_first_one_ends_as_if_alone() {
    on_each_major(|admin| {
        let site = Site::new(admin, 2);
        let (holder, gate) = site.in_flight();
        // Side by side: the first one's broker is waited for a bounded time only.
        let contenders = ["apply", "apply --dry-run", "plan --out plan.json"]
            .map(|command| (command, site.start(&format!("{command} -o json"))));
        for (command, contender) in contenders {
            let second = Run::of(command, contender.wait_with_output().expect("an end")).exits(1);
            assert_eq!(code(&second), "E422_STATE_LOCK_TIMEOUT", "{command}: {}", second.stdout);
            assert!(second.stdout.contains("lock-status"), "{command}: {}", second.stdout);
        }
        assert!(!site.workspace.path("plan.json").exists());
        assert_eq!(site.changes().len(), 1, "only the first one's request");
        gate.open();
        let run = Run::of("apply", holder.wait_with_output().expect("an end")).exits(0);
        assert_eq!(run.json()["data"]["committed"], true, "{}", run.stdout);
        assert_eq!(site.stands(), ("clear".to_owned(), 1));
        let third = site.apply().exits(0).json();
        assert_eq!(third["data"]["created"], serde_json::json!([]), "{third}");
    });
}
