//! A process of its own that works on a project: the test binary, run again.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::*;
use crate::codes::Code;
use crate::state::control::{AcceptedAs, FailureCode, Resolution};

const PROJECT: &str = "STREAMT_TEST_PROJECT";
const SCRIPT: &str = "STREAMT_TEST_SCRIPT";

/// What the process does; each acknowledged step prints one mark.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Script {
    /// One update, a group of three creates, and a commit that owns one more topic: six steps.
    Apply,
    /// A refused create and its incident: four steps.
    Fail,
    /// An intent taken back: two steps.
    TakeBack,
    /// Takes the lock and gives it back: one step.
    Visit,
    /// Resolves what is blocked by one and the same reviewed recovery, unless that is done: one step.
    Recover,
    /// As `Apply`, with one action and a topic named after the process.
    Race,
    /// Takes the replacement of a runner from wherever it stands to its end, once.
    Replace,
}

const SCRIPTS: [Script; 7] =
    [Script::Apply, Script::Fail, Script::TakeBack, Script::Visit, Script::Recover, Script::Race, Script::Replace];
/// The id of every recovery of [`Script::Recover`].
pub const RECOVERY: Uuid = Uuid::from_u128(0x0a7a_c3f4_7d52_4d26_8a9b_2f6a_4c1d_9e10);
const MARK: &str = "<acked>";

/// A command that runs a script on a project.
pub fn command(script: Script, project: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    set_up(&mut command, script, project);
    command
}

/// As [`command`], below a shell command line in which `"$@"` is the process.
pub fn command_in(shell: &str, script: Script, project: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", shell, "sh"]).arg(std::env::current_exe().unwrap());
    set_up(&mut command, script, project);
    command
}

fn set_up(command: &mut Command, script: Script, project: &Path) {
    command
        .args(["state::local::tests::child::run_a_script", "--exact", "--nocapture", "--test-threads=1"])
        .env(PROJECT, project)
        .env(SCRIPT, format!("{script:?}"))
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null());
}

/// Runs a script without the privileges that ignore permission bits, from a place that everybody may enter.
pub fn unprivileged(script: Script, project: &Path) -> Output {
    if !rustix::process::geteuid().is_root() {
        return command(script, project).output().unwrap();
    }
    let place = tempfile::tempdir().unwrap();
    std::fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
    let (own, copy) = (std::env::current_exe().unwrap(), place.path().join("child"));
    std::fs::hard_link(&own, &copy).or_else(|_| std::fs::copy(&own, &copy).map(drop)).unwrap();
    let mut command = Command::new(copy);
    set_up(&mut command, script, project);
    command.uid(65534).gid(65534).output().unwrap()
}

/// The number of acknowledged steps.
pub fn acked(output: &Output) -> usize {
    String::from_utf8_lossy(&output.stdout).matches(MARK).count()
}

/// The error that ended it, if any.
pub fn code(output: &Output) -> Option<Code> {
    let text = String::from_utf8_lossy(&output.stdout);
    let code = text.split("<code:").nth(1)?.split('>').next()?;
    Code::ALL.iter().copied().find(|known| known.as_str() == code)
}

fn mark() {
    let mut out = std::io::stdout();
    out.write_all(MARK.as_bytes()).unwrap();
    out.flush().unwrap();
}

/// The other process of the crash tests; without their variables it has nothing to do.
#[test]
fn run_a_script() {
    let (Some(project), Ok(script)) = (std::env::var_os(PROJECT), std::env::var(SCRIPT)) else { return };
    let script = SCRIPTS.into_iter().find(|known| format!("{known:?}") == script).unwrap();
    if let Err(error) = run(script, Path::new(&project)) {
        println!("<code:{}> {error}", error.code());
        std::io::stdout().flush().unwrap();
        std::process::exit(1);
    }
    println!("<done>");
}

fn run(script: Script, project: &Path) -> Result<(), StateError> {
    let store = LocalStore::new(project)?;
    let mut operation = store.acquire(&address(), Duration::from_secs(120), &CancellationToken::new())?;
    let snapshot = operation.observe()?;
    let steps = |operation: &mut LocalOperation, snapshot, run: Vec<_>| {
        let snapshot = operation.record_progress(snapshot, run)?;
        mark();
        Ok::<_, StateError>(snapshot)
    };
    match script {
        Script::Visit => mark(),
        Script::Apply => {
            let mut list = topic_creates(4);
            list[0].action = crate::planner::model::Verb::Update;
            let intent = intent(&snapshot, list);
            let mut snapshot = operation.begin(snapshot, intent.clone())?;
            mark();
            for members in [0..1, 1..4] {
                let run = members.clone().map(|index| started(&intent, index)).collect();
                snapshot = steps(&mut operation, snapshot, run)?;
                let run = members.map(|index| completed(&intent, index, true)).collect();
                snapshot = steps(&mut operation, snapshot, run)?;
            }
            let next = owning(&snapshot, &format!("orders-{}", snapshot.state.state.serial));
            operation.commit(snapshot, Some(next), at(4))?;
            mark();
        }
        Script::Fail => {
            let intent = intent(&snapshot, topic_creates(2));
            let snapshot = operation.begin(snapshot, intent.clone())?;
            mark();
            let snapshot = steps(&mut operation, snapshot, vec![started(&intent, 0)])?;
            let snapshot = steps(&mut operation, snapshot, vec![completed(&intent, 0, false)])?;
            let record = testing::recovery(&intent, FailureCode::RuntimeActionFailed, None);
            operation.mark_recovery_required(snapshot, record)?;
            mark();
        }
        Script::TakeBack => {
            let intent = intent(&snapshot, topic_creates(1));
            let snapshot = operation.begin(snapshot, intent)?;
            mark();
            operation.clear_before_mutation(snapshot, at(1))?;
            mark();
        }
        Script::Recover => {
            if operation.resolution(RECOVERY)?.is_none() {
                let changes = snapshot.control.control.recovery().is_some();
                let next = changes.then(|| owning(&snapshot, "observed"));
                let accepted = if changes { AcceptedAs::Candidate } else { AcceptedAs::Prior };
                let mut intent = testing::recovery_intent(&snapshot, Resolution::Observed, accepted, next.as_ref());
                intent.record.recovery_operation_id = RECOVERY;
                operation.finalize_recovery(snapshot, intent, next)?;
            }
            mark();
        }
        Script::Replace => super::runner::carry_on(&mut operation, snapshot)?,
        Script::Race => {
            operation.ensure_ready(&snapshot)?;
            let intent = intent(&snapshot, topic_creates(1));
            let snapshot = operation.begin(snapshot, intent.clone())?;
            let snapshot = steps(&mut operation, snapshot, vec![started(&intent, 0)])?;
            let snapshot = steps(&mut operation, snapshot, vec![completed(&intent, 0, true)])?;
            let next = owning(&snapshot, &format!("topic-{}", std::process::id()));
            println!("<serial:{}>", next.serial);
            operation.commit(snapshot, Some(next), at(4))?;
        }
    }
    operation.release()
}
