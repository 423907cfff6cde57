//! What the files of one environment say together, through every window that a killed commit may leave.

use std::sync::Arc;
use std::time::Duration;

use crate::compiler::canonical::Checksum;
use crate::state::control::{Control, ResolutionRecord};
use crate::state::error::StateError;
use crate::state::model::{MAX_STATE, OwnershipState, StateAddress, StoreIdentity};
use crate::state::step::{MAX_FILE, control_revision, state_revision};
use crate::state::store::{ControlObservation, Revision, Snapshot, StateObservation};

use super::control_file::ControlFile;
use super::files::{Print, StateDir, label};
use super::history::History;

/// The file names of one environment. An environment's name has no dot, so no name belongs to two.
#[derive(Clone, Debug)]
pub struct Names {
    pub state: String,
    pub control: String,
    pub history: String,
    pub pending: String,
    pub lock: String,
}

impl Names {
    pub fn of(environment: &str) -> Self {
        Self {
            state: format!("{environment}.json"),
            control: format!("{environment}.control.jsonl"),
            history: format!("{environment}.recovery-history.jsonl"),
            pending: format!(".{environment}.json.pending"),
            lock: format!(".{environment}.json.lock"),
        }
    }

    /// Whether a name is a temporary file that a killed replacement of one of these left behind.
    pub fn is_left_over(&self, name: &str) -> bool {
        [&self.state, &self.control, &self.history].into_iter().any(|target| {
            name.strip_prefix('.')
                .and_then(|name| name.strip_prefix(target.as_str()))
                .and_then(|name| name.strip_prefix('.'))
                .and_then(|name| name.strip_suffix(".tmp"))
                .is_some_and(|random| random.len() == 32 && random.bytes().all(|byte| byte.is_ascii_hexdigit()))
        })
    }
}

/// Ownership as one file gives it; `stored` = false for the empty state of an absent file.
struct Owned {
    state: Arc<OwnershipState>,
    checksum: Checksum,
    stored: bool,
}

impl Owned {
    fn absent(address: &StateAddress) -> Result<Self, StateError> {
        let state = OwnershipState::empty(&address.project, &address.environment);
        Ok(Self { checksum: state.checked(address)?, state: Arc::new(state), stored: false })
    }

    fn read(bytes: &[u8], address: &StateAddress, name: &str) -> Result<Self, StateError> {
        let state = OwnershipState::read(bytes, address, &label(name))?;
        Ok(Self { checksum: state.checked(address)?, state: Arc::new(state), stored: true })
    }
}

pub struct View {
    address: StateAddress,
    owned: Owned,
    /// Whether ownership stands in the pending file, which only a committed operation makes valid.
    pub from_pending: bool,
    pub control: Control,
    control_stored: bool,
    /// The operation of the control file ended, and its clear header is missing.
    pub ended: bool,
    /// Bytes of the control file that count.
    pub control_length: u64,
    pub prints: Prints,
    pub history: History,
}

/// Cheap proof that nobody wrote the files since they were read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prints {
    pub state: Option<Print>,
    pub control: Option<Print>,
    pub history: Option<Print>,
}

impl Prints {
    pub fn now(dir: &StateDir, names: &Names) -> Result<Self, StateError> {
        Ok(Self {
            state: dir.print(&names.state)?,
            control: dir.print(&names.control)?,
            history: dir.print(&names.history)?,
        })
    }
}

impl View {
    /// Nothing was ever stored.
    pub fn absent(address: &StateAddress) -> Result<Self, StateError> {
        Ok(Self {
            address: address.clone(),
            owned: Owned::absent(address)?,
            from_pending: false,
            control: Control::clear(address),
            control_stored: false,
            ended: false,
            control_length: 0,
            prints: Prints { state: None, control: None, history: None },
            history: History::default(),
        })
    }

    /// Reads all files once. E411, E420.
    pub fn read(dir: &StateDir, address: &StateAddress) -> Result<Self, StateError> {
        let names = Names::of(&address.environment);
        let mut view = Self::absent(address)?;
        view.history = History::read(dir, &names.history, address)?;
        view.prints.history = view.history.print;
        let mut closing = None;
        if let Some((bytes, print)) = dir.read(&names.control, MAX_FILE)? {
            let file = ControlFile::read(&bytes, address, &label(&names.control))?;
            view.control_length = u64::try_from(file.length).unwrap_or(u64::MAX);
            view.prints.control = Some(print);
            view.control_stored = true;
            view.ended = file.ended;
            view.control = file.control;
            closing = file.closing.map(|end| end.state_checksum);
        }
        if let Some((bytes, print)) = dir.read(&names.state, MAX_STATE)? {
            view.owned = Owned::read(&bytes, address, &names.state)?;
            view.prints.state = Some(print);
        }
        if view.control.is_clear() && view.history.unresolved.is_some() {
            let history = label(&names.history);
            return Err(StateError::invalid(format!("{history}: a recovery is under way, but nothing is pending")));
        }
        if let Some(record) = view.control.operation_id().and_then(|blocked| view.history.ending(blocked)) {
            closing = Some(recovered(&view.control, record)?);
            view.control = Control::clear(address);
            view.ended = true;
        }
        if let Some(receipt) = view.control.operation_id().and_then(|id| view.history.completion(id)) {
            if receipt.control != view.control.to_value() {
                return Err(StateError::invalid("the recovery history ends another control than the pending one")
                    .operation(view.control.operation_id()));
            }
            closing = Some(receipt.result_state_checksum.clone());
            view.control = Control::clear(address);
            view.ended = true;
        }
        view.history.pending_resume(&view.control)?;
        match (&closing, view.control.intent()) {
            (Some(result), _) if *result != view.owned.checksum => {
                view.owned = committed(dir, &names, address, result)?;
                view.from_pending = true;
            }
            (None, Some(intent)) if intent.prior_state_checksum != view.owned.checksum => {
                let state = label(&names.state);
                return Err(StateError::invalid(format!(
                    "{state} is not the state that the pending operation started from"
                )));
            }
            (Some(_) | None, _) => {}
        }
        Ok(view)
    }

    /// As [`View::read`] beside a writer: reads again while the files change under it.
    pub fn read_unlocked(dir: &StateDir, address: &StateAddress) -> Result<Self, StateError> {
        let names = Names::of(&address.environment);
        let mut tries = 0;
        loop {
            let before = Prints::now(dir, &names)?;
            let view = Self::read(dir, address);
            tries += 1;
            if before == Prints::now(dir, &names)? || tries == 20 {
                return view;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn snapshot(&self, store: &StoreIdentity) -> Snapshot {
        let owned = &self.owned;
        Snapshot {
            state: StateObservation {
                store: store.clone(),
                address: self.address.clone(),
                state: owned.state.clone(),
                checksum: owned.checksum.clone(),
                revision: if owned.stored { state_revision(&owned.checksum) } else { Revision::Absent },
            },
            control: ControlObservation {
                control: self.control.clone(),
                revision: if self.control_stored { control_revision(&self.control) } else { Revision::Absent },
            },
        }
    }
}

/// The state that a recovery of this control leaves, from the moment its intent is in the history.
fn recovered(control: &Control, record: &ResolutionRecord) -> Result<Checksum, StateError> {
    let same_start = control.intent().is_some_and(|intent| {
        (intent.prior_state_serial, &intent.prior_state_checksum)
            == (record.prior_state_serial, &record.prior_state_checksum)
    });
    if same_start {
        return Ok(record.result_state_checksum.clone());
    }
    Err(StateError::invalid("the recovery history starts from another state than the operation that it ends"))
}

/// The ownership that a commit or a recovery prepared and did not put in place any more.
fn committed(dir: &StateDir, names: &Names, address: &StateAddress, checksum: &Checksum) -> Result<Owned, StateError> {
    let pending = match dir.read(&names.pending, MAX_STATE)? {
        Some((bytes, _)) => Some(Owned::read(&bytes, address, &names.pending)?),
        None => None,
    };
    pending.filter(|owned| owned.checksum == *checksum).ok_or_else(|| {
        StateError::invalid(format!("{} is not the state that the last operation committed", label(&names.state)))
    })
}
