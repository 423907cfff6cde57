//! Identities and the ownership document: golden digests, exact forms, and reading back what was written.

use proptest::prelude::*;

use super::*;
use crate::codes::Code;
use crate::compiler::canonical::to_canonical;
use crate::state::error::StateError;
use crate::state::testing::{address, id, record};

fn golden() -> OwnershipState {
    let mut state = OwnershipState::empty("payments", "prod");
    state.serial = 1;
    let checksum = "sha256:3f356133a442584758e2061b9fbd22113227482ffaadbf928cac7bb5bea3be1f";
    let owned = OwnershipRecord { artifact_checksum: Checksum::parse(checksum).unwrap(), ..record("orders.v1") };
    state.resources.insert(id(Kind::Topic, "orders"), owned);
    state
}

/// SAF-021, SAF-022: G6, G8
#[test]
fn golden_digests_of_ownership() {
    let empty = OwnershipState::empty("payments", "prod");
    let text = r#"{"environment":"prod","project":"payments","resources":{},"serial":0,"state_version":1}"#;
    assert_eq!(to_canonical(&empty).unwrap(), text.as_bytes());
    let digest = |state: &OwnershipState| state.checksum().unwrap().to_string();
    assert_eq!(digest(&empty), "sha256:714f7224ff7ac93a7774438f066d176c5a94cbea5724919d1e87c93ef7b54103");
    assert_eq!(digest(&golden()), "sha256:5d2ec90d82d271047c9fa505d666c204e4fcae975da00ec4e232abdd9847f3bb");
}

#[test]
fn a_resource_id_renders_to_the_text_it_was_read_from() {
    let id = ResourceId::parse("streamt://payments/prod/topic/orders.v1").unwrap();
    assert_eq!(
        (id.project(), id.environment(), id.kind(), id.logical_name()),
        ("payments", "prod", Kind::Topic, "orders.v1")
    );
    for bad in [
        "",
        "streamt://",
        "streamt://a/b/topic",
        "streamt://a/b/topic/",
        "streamt:///b/topic/x",
        "streamt://a//topic/x",
        "streamt://a/b/topic/x/",
        "streamt://a/b/topic/x/y",
        "streamt://a/b/queue/x",
        "STREAMT://a/b/topic/x",
        "streamt-state://a/b/topic/x",
        "streamt://a/b/topic/x\n",
        " streamt://a/b/topic/x",
    ] {
        assert_eq!(ResourceId::parse(bad), None, "{bad:?}");
    }
    let long =
        |length: usize| ResourceId::new("a", "b", Kind::Topic, &"x".repeat(length - "streamt://a/b/topic/".len()));
    assert!(long(512).is_some() && long(513).is_none());
}

/// SAF-020
#[test]
fn an_external_resource_is_never_recorded() {
    let mut state = golden();
    state.resources.values_mut().for_each(|record| record.ownership = OwnershipMode::External);
    let refused = StateError::from(state.checked(&address("local")).unwrap_err());
    assert_eq!(refused.code(), Code::E411StateInvalid);
    let bytes = to_canonical(&state).unwrap();
    assert!(OwnershipState::read(&bytes, &address("local"), "state").is_err());
}

#[test]
fn a_refusal_names_the_file_and_never_quotes_it() {
    let error = StateError::from(
        OwnershipState::read(br#"{"password":"hunter2"}"#, &address("local"), ".streamt/state/prod.json").unwrap_err(),
    );
    assert_eq!(
        error.to_string(),
        "the deployment state is not valid: .streamt/state/prod.json is not of the expected form"
    );
}

fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9 ._\u{e9}\u{4e2d}-]{1,12}"
}

proptest! {
    /// SAF-020, SAF-021, SAF-022
    #[test]
    fn any_ownership_is_read_as_it_was_written(
        serial in 1_u64..(1 << 53),
        resources in proptest::collection::btree_map(name(), (0_usize..6, any::<bool>(), name(), name()), 0..12),
    ) {
        let mut state = OwnershipState::empty("payments", "prod");
        state.serial = serial;
        for (logical, (kind, adopted, physical, backend)) in resources {
            let ownership = if adopted { OwnershipMode::Adopted } else { OwnershipMode::Managed };
            let owned = OwnershipRecord { ownership, backend, ..record(&physical) };
            state.resources.insert(id(Kind::ALL[kind], &logical), owned);
        }
        let bytes = to_canonical(&state).unwrap();
        let read = OwnershipState::read(&bytes, &address("local"), "state").unwrap();
        prop_assert_eq!(&read, &state);
        prop_assert_eq!(read.checked(&address("local")).unwrap(), Checksum::of_bytes(&bytes));
    }

    #[test]
    fn arbitrary_bytes_never_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(OwnershipState::read(&bytes, &address("local"), "state").is_err());
    }
}
