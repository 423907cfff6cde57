//! A foreign writer in the rows of a held address.

use super::site::{Site, code, on_each_major};
use crate::faults::{Fault, Request, nth};

/// PGS-013: E424, and nothing is written over what the other one wrote.
#[test]
fn a_foreign_writer_in_the_middle_of_a_step_is_a_conflict() {
    fn begins(request: &Request) -> bool {
        request.what.contains("READ WRITE")
    }
    // Inside the transaction, after its snapshot was taken: the server answers 40001.
    fn locks(request: &Request) -> bool {
        request.what.contains("FOR UPDATE") && request.what.contains("control_checksum")
    }
    on_each_major(|admin| {
        for (moment, step) in [(begins as fn(&Request) -> bool, 1), (locks, 1), (begins, 2), (locks, 4)] {
            let site = Site::new(admin, 1);
            let (admin, schema) = (admin.to_owned(), site.database.schema().to_owned());
            let meddle = Fault::call(move |_| {
                super::site::sql(&admin, &format!("UPDATE {schema}.operation_control SET revision = revision + 1"));
            });
            let met = site.db.rule(nth(step, moment), meddle);
            let run = site.apply().exits(1);
            assert_eq!(met.count(), 1, "step {step}: {}", run.stdout);
            assert_eq!(code(&run), "E424_STATE_CONFLICT", "step {step}: {}", run.stdout);
            let (status, serial) = site.stands();
            match step {
                1 => assert_eq!((status.as_str(), serial, site.changes().len()), ("clear", 0, 0)),
                // The intent was withdrawn: nothing had been started.
                2 => assert_eq!((status.as_str(), serial, site.changes().len()), ("clear", 0, 0)),
                _ => assert_eq!((status.as_str(), serial, site.changes().len()), ("in_progress", 0, 1)),
            }
            assert_eq!(site.holders(), 0, "the lock is given back");
        }
    });
}
