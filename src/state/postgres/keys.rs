//! Advisory lock keys: the first bytes of a digest, so that every process computes the same one.

use sha2::{Digest, Sha256};

use crate::state::model::StateAddress;

/// The session lock of one state address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressKey(i64);

impl AddressKey {
    pub fn of(address: &StateAddress) -> Self {
        let digest = digest("streamt-postgres-state-address-v1", &address.to_string());
        Self(i64::from_be_bytes([
            digest[0], digest[1], digest[2], digest[3], digest[4], digest[5], digest[6], digest[7],
        ]))
    }

    pub const fn get(self) -> i64 {
        self.0
    }

    /// The halves as `pg_locks` shows them: classid, objid.
    pub const fn halves(self) -> (u32, u32) {
        let [a, b, c, d, e, f, g, h] = self.0.to_be_bytes();
        (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))
    }
}

/// The lock under which a schema is made or changed.
pub fn schema_key(schema: &str) -> (i32, i32) {
    let digest = digest("streamt-postgres-state-init-v1", schema);
    let half = |at: usize| i32::from_be_bytes([digest[at], digest[at + 1], digest[at + 2], digest[at + 3]]);
    (half(0), half(4))
}

fn digest(domain: &str, text: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(domain.as_bytes());
    hash.update([0]);
    hash.update(text.as_bytes());
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(namespace: &str, project: &str, environment: &str) -> AddressKey {
        AddressKey::of(&StateAddress {
            namespace: namespace.into(),
            project: project.into(),
            environment: environment.into(),
        })
    }

    #[test]
    fn keys_are_those_of_the_golden_vectors() {
        let prod = key("platform", "payments", "prod");
        assert_eq!(prod.get(), 4_264_541_682_225_366_529);
        assert_eq!(prod.halves(), (992_915_984, 3_269_707_265));
        assert_eq!(key("shared", "demo", "default").get(), -3_812_564_274_437_369_779);
        assert_eq!(schema_key("streamt"), (554_284_961, 1_528_305_220));
    }
}
