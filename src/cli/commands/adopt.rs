//! `streamt adopt`: claims resources that exist, one after a confirmation, or a reviewed selection by its token. Ownership is
//! written and nothing else: what is live stays as it is until a plan is applied.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Map, Value, json};

use super::adoption_view::{self, Stage};
use super::apply::reload;
use crate::cli::args::ProjectArgs;
use crate::cli::console;
use crate::cli::context::Context;
use crate::cli::doc::{Doc, Line, Tone};
use crate::cli::glob::Glob;
use crate::cli::outcome::{CmdResult, Failure, Outcome, exit};
use crate::cli::{gates, live, project, prompt, shell};
use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::Compiled;
use crate::compiler::artifact::Kind;
use crate::messages::adoption::{Adopt, AdoptEnd, AdoptOutcome, AdoptRequest, Confirm};
use crate::planner::Desired;
use crate::project::Project;
use crate::state::adoption::{self, KINDS, Review, Selection, Target};

/// Claim existing resources without changing them
///
/// Name one declaration of mode `adopted` with --kind and --name: the live resource is shown beside the declaration, and
/// claimed once it is confirmed. For several, save a selection, have it reviewed, and adopt it with the token that saving it
/// printed. Nothing is ever changed at a service; `streamt plan` shows what would be.
#[derive(Debug, Args)]
pub struct AdoptArgs {
    #[command(flatten)]
    project: ProjectArgs,

    /// Kind of the resource; with --save-selection, repeatable: only these
    #[arg(
        long = "kind",
        value_name = "KIND",
        value_parser = PossibleValuesParser::new(["topic", "schema", "connector", "gateway_rule", "flink_job", "kafka_streams_job"])
    )]
    kinds: Vec<String>,

    /// The model or source that declares it
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Confirm without a question: the resource id that the review shows
    #[arg(long, value_name = "ID")]
    confirm_resource: Option<String>,

    /// Confirm without a question: the environment
    #[arg(long, value_name = "ENV")]
    confirm_env: Option<String>,

    /// Review every adopted declaration that is not recorded yet, and save the selection to a new file
    #[arg(long, value_name = "FILE")]
    save_selection: Option<PathBuf>,

    /// With --save-selection: only names that match
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,

    /// With --save-selection: no names that match
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,

    /// Adopt exactly this reviewed selection
    #[arg(long, value_name = "FILE")]
    selection: Option<PathBuf>,

    /// Confirm the selection: the token that saving it printed
    #[arg(long, value_name = "TOKEN")]
    confirm_token: Option<String>,
}

/// What the options ask for.
enum Form<'a> {
    One { kind: Kind, name: &'a str },
    Save(PathBuf),
    Selection(PathBuf),
}

pub fn run(context: &Context, args: &AdoptArgs) -> CmdResult {
    let form = form(context, args)?;
    let selection = match &form {
        Form::One { .. } | Form::Save(_) => None,
        Form::Selection(path) => Some(Arc::new(confirmed_selection(path, args.confirm_token.as_deref())?)),
    };
    let project_args = effective(context, &args.project)?;
    let opened = project::open(context, &project_args)?;
    gates::remote_state(&opened.project)?;
    if let Form::Save(path) = &form {
        adoption::refuse_existing(path)?;
    }
    let (compiled, mut warnings) = project::checked(opened)?;
    warnings.extend(gates::protected(&compiled.project));
    let desired = Desired::of(&compiled);
    let what = match (form, selection) {
        (_, Some(selection)) => Adopt::Selected { selection, reload: reload(context, &project_args) },
        (Form::Save(out), None) => {
            let kinds: Vec<Kind> = args.kinds.iter().filter_map(|kind| Kind::parse(kind)).collect();
            let candidates = adoption::adoptable(&desired, if kinds.is_empty() { &KINDS } else { &kinds });
            Adopt::Save { candidates: filtered(candidates, args), out }
        }
        (Form::One { kind, name }, None) => {
            let target =
                Target::find(&desired, kind, name).map_err(|error| Failure::new(error).warn(warnings.clone()))?;
            let confirm = confirmation(context, args, &compiled.project, target.resource_id.as_str());
            Adopt::One { kind, name: name.to_owned(), confirm }
        }
        (Form::Selection(_), None) => return Err(Failure::usage("--selection names no selection")),
    };
    let request = AdoptRequest {
        compiled: Arc::clone(&compiled),
        what,
        actor: context.variables.get("STREAMT_ACTOR").cloned().unwrap_or_else(|| "local-cli".to_owned()),
    };
    let outcome = match live::adopt(context, request) {
        Ok(outcome) => outcome,
        Err(failure) => return Err(failure.warn(warnings)),
    };
    project::merge(&mut warnings, outcome.warnings.iter().cloned());
    let report = Report { args, compiled: &compiled, outcome: &outcome, context };
    report.result().map(|done| done.warn(warnings.clone())).map_err(|failure| failure.warn(warnings))
}

/// Which of the three forms it is; E902 for a mixture of them.
fn form<'a>(context: &Context, args: &'a AdoptArgs) -> Result<Form<'a>, Failure> {
    let usage = |message: &str, hint: &str| Err(Failure::usage(message).hint(hint));
    let one = args.name.is_some() || args.confirm_resource.is_some() || args.confirm_env.is_some();
    let filters = !args.include.is_empty() || !args.exclude.is_empty();
    match (&args.save_selection, &args.selection) {
        (Some(_), Some(_)) => {
            usage("--save-selection and --selection exclude each other", "Save first, review, then adopt")
        }
        (Some(_), None) if one || args.confirm_token.is_some() => usage(
            "--save-selection claims nothing and takes no name and no confirmation",
            "Narrow it with --kind, --include and --exclude",
        ),
        (None, Some(_)) if one || filters || !args.kinds.is_empty() => usage(
            "--selection adopts what its file names, and takes no other choice than --confirm-token",
            "Save another selection to adopt something else",
        ),
        (Some(path), None) => Ok(Form::Save(context.directory.join(path))),
        (None, Some(path)) => Ok(Form::Selection(context.directory.join(path))),
        (None, None) if filters || args.confirm_token.is_some() => usage(
            "--include, --exclude and --confirm-token belong to selections",
            "Use --save-selection FILE, then --selection FILE --confirm-token TOKEN",
        ),
        (None, None) => {
            let kind = match args.kinds.as_slice() {
                [kind] => Kind::parse(kind),
                [] | [_, ..] => None,
            };
            match (kind, &args.name) {
                (Some(kind), Some(name)) => match args.confirm_resource.is_some() == args.confirm_env.is_some() {
                    true => Ok(Form::One { kind, name }),
                    false => Err(Diagnostic::new(
                        Code::E412AdoptionTargetInvalid,
                        "--confirm-resource and --confirm-env confirm together: one of them is missing",
                    )
                    .suggest("give both, as the review shows them, or none")
                    .into()),
                },
                (Some(_) | None, _) => usage(
                    "one --kind and one --name are required",
                    "Several resources are adopted by --save-selection FILE and --selection FILE --confirm-token TOKEN",
                ),
            }
        }
    }
}

/// `--env default` names the one environment of a project without environments.
fn effective(context: &Context, args: &ProjectArgs) -> Result<ProjectArgs, Failure> {
    let fs = project::directory(context, args)?;
    let single = || crate::project::environments(&fs).is_ok_and(|names| names.is_none());
    let env = args.env.clone().filter(|name| name != "default" || !single());
    Ok(ProjectArgs { env, ..args.clone() })
}

/// E408 for the file, then E414 for the token.
fn confirmed_selection(path: &std::path::Path, token: Option<&str>) -> Result<Selection, Failure> {
    let selection = adoption::read(path)?;
    let refuse = |message: &str| {
        let hint = format!(
            "have the file reviewed (`streamt review {}`), then give the token that saving it printed",
            shell::quote(&path.display().to_string())
        );
        Err(Failure::new(Diagnostic::new(Code::E414AdoptionConfirmationRequired, message).suggest(hint)))
    };
    match token {
        Some(token) if token == selection.token() => Ok(selection),
        Some(_) => refuse("--confirm-token is not the token of this selection"),
        None => refuse("a selection is confirmed with --confirm-token"),
    }
}

fn filtered(candidates: Vec<(Kind, String)>, args: &AdoptArgs) -> Vec<(Kind, String)> {
    let globs = |patterns: &[String]| patterns.iter().map(|pattern| Glob::new(pattern)).collect::<Vec<_>>();
    let (include, exclude) = (globs(&args.include), globs(&args.exclude));
    let any = |globs: &[Glob], name: &str| globs.iter().any(|glob| glob.matches(name));
    candidates
        .into_iter()
        .filter(|(_, name)| (include.is_empty() || any(&include, name)) && !any(&exclude, name))
        .collect()
}

/// What a person types, word for word.
fn confirmation_text(resource_id: &str, environment: &str) -> String {
    format!("adopt {resource_id} in {environment}")
}

/// Both options, exactly; or the exact words on a terminal. E414 otherwise.
fn confirmation(context: &Context, args: &AdoptArgs, project: &Project, resource_id: &str) -> Confirm {
    let (context, environment) = (context.clone(), project.environment.name.clone());
    let options = args.confirm_resource.clone().zip(args.confirm_env.clone());
    let hint = format!(
        "read the review, then confirm with --confirm-resource {} --confirm-env {}",
        shell::quote(resource_id),
        shell::quote(&environment)
    );
    let refuse =
        move |message: String| Diagnostic::new(Code::E414AdoptionConfirmationRequired, message).suggest(hint.clone());
    Box::new(move |review: &Review| {
        let resource_id = review.resource_id.to_string();
        if let Some((resource, env)) = options {
            let wrong = match (resource == resource_id, env == environment) {
                (true, true) => None,
                (false, _) => Some(format!("--confirm-resource is not '{resource_id}'")),
                (true, false) => Some(format!("--confirm-env is not '{environment}'")),
            };
            return Box::pin(std::future::ready(wrong.map_or(Ok(()), |text| Err(refuse(text)))));
        }
        if !context.interactive() {
            return Box::pin(std::future::ready(Err(refuse(format!(
                "the adoption of {resource_id} is not confirmed"
            )))));
        }
        console::write_stderr(&adoption_view::review(review, Stage::Reviewed).render(context.stderr.colour));
        let expected = confirmation_text(&resource_id, &environment);
        let answer = prompt::ask_aside(&context, format!("Type '{expected}' to adopt it: "));
        Box::pin(async move {
            match answer.await {
                Ok(Some(answer)) if answer == expected => Ok(()),
                Ok(Some(_)) => Err(refuse(format!("the adoption of {resource_id} was not confirmed"))),
                Ok(None) | Err(_) => Err(refuse(format!("the adoption of {resource_id} is not confirmed"))),
            }
        })
    })
}

struct Report<'a> {
    args: &'a AdoptArgs,
    compiled: &'a Arc<Compiled>,
    outcome: &'a AdoptOutcome,
    context: &'a Context,
}

impl Report<'_> {
    fn result(&self) -> CmdResult {
        match &self.outcome.end {
            AdoptEnd::Adopted | AdoptEnd::AlreadyOwned => Ok(Outcome::new(&self.data(), self.text())),
            AdoptEnd::Saved { .. } => Ok(Outcome::new(&self.saved_data(), self.saved_text())),
            AdoptEnd::Failed(errors) => Err(self.failed(errors.clone(), exit::FAILURE)),
            AdoptEnd::Interrupted(signal, error) => Err(self.failed(error.clone().into(), live::exit_of(*signal))),
        }
    }

    fn failed(&self, errors: Diagnostics, code: u8) -> Failure {
        let mut text = self.reviews();
        if self.outcome.recovery_required {
            for step in self.recovery_steps() {
                text.line(Line::new().tone(Tone::Heading, "Next:").plain(format!(" {step}")));
            }
        }
        Failure::new(errors).data(&self.data()).text(text).exit(code)
    }

    fn project(&self) -> &Project {
        &self.compiled.project
    }

    fn reviews(&self) -> Doc {
        let stage = match &self.outcome.end {
            AdoptEnd::Saved { .. } => Stage::Reviewed,
            AdoptEnd::Adopted | AdoptEnd::AlreadyOwned => Stage::Adopted,
            AdoptEnd::Failed(_) | AdoptEnd::Interrupted(..) if self.adopted() => Stage::Adopted,
            AdoptEnd::Failed(_) | AdoptEnd::Interrupted(..) => Stage::NotAdopted,
        };
        let mut doc = Doc::new();
        for review in &self.outcome.reviews {
            doc.append(adoption_view::review(review, stage));
        }
        doc
    }

    fn adopted(&self) -> bool {
        self.outcome.committed == Some(true)
    }

    /// What every form tells of its end.
    fn end(&self, data: &mut Map<String, Value>) {
        let outcome = self.outcome;
        if let Some(state) = &outcome.state {
            data.insert("state_serial".to_owned(), json!(state.serial));
            if let Some(file) = &state.file {
                data.insert("state_file".to_owned(), json!(file.display().to_string()));
            }
        }
        data.insert("adopted".to_owned(), json!(self.adopted()));
        data.insert("already_owned".to_owned(), json!(outcome.end == AdoptEnd::AlreadyOwned));
        match (&outcome.end, outcome.committed) {
            (AdoptEnd::AlreadyOwned | AdoptEnd::Saved { .. }, _) => {}
            (AdoptEnd::Adopted | AdoptEnd::Failed(_) | AdoptEnd::Interrupted(..), committed) => {
                data.insert("committed".to_owned(), json!(committed));
            }
        }
        if matches!(outcome.end, AdoptEnd::Adopted | AdoptEnd::AlreadyOwned) {
            data.insert("next_command".to_owned(), json!(self.next_command()));
        }
        if outcome.recovery_required {
            data.insert("next_steps".to_owned(), json!(self.recovery_steps()));
        }
    }

    fn data(&self) -> Value {
        let outcome = self.outcome;
        let mut data = Map::new();
        match (&self.args.selection, outcome.reviews.as_slice()) {
            (Some(file), reviews) => {
                data.insert(
                    "selection_file".to_owned(),
                    json!(self.context.directory.join(file).display().to_string()),
                );
                data.insert("checksum".to_owned(), json!(outcome.selection_checksum));
                let rows: Vec<Value> = reviews.iter().map(|review| Value::Object(review.data())).collect();
                data.insert("resources".to_owned(), Value::Array(rows));
            }
            (None, [review]) => data.extend(review.data()),
            (None, _) => {}
        }
        self.end(&mut data);
        Value::Object(data)
    }

    fn text(&self) -> Doc {
        let mut doc = self.reviews();
        let serial = self.outcome.state.as_ref().map_or(0, |state| state.serial);
        let count = self.outcome.reviews.len();
        doc.line(match (self.adopted(), count) {
            (true, 1) => {
                Line::new().tone(Tone::Create, "Adopted").plain(format!(" (serial {serial}); it was not changed."))
            }
            (true, count) => Line::new()
                .tone(Tone::Create, format!("Adopted {count} resources"))
                .plain(format!(" (serial {serial}); none was changed.")),
            (false, _) => Line::from("Owned already; nothing was written."),
        });
        doc.line(Line::new().tone(Tone::Heading, "Next:").plain(format!(" {}", self.next_command().join(" "))));
        doc
    }

    fn saved_data(&self) -> Value {
        let AdoptEnd::Saved { path, selection } = &self.outcome.end else { return json!({}) };
        let rows: Vec<Value> = self.outcome.reviews.iter().map(|review| Value::Object(review.data())).collect();
        let mut data = Map::new();
        data.insert("selection_file".to_owned(), json!(path.display().to_string()));
        data.insert("checksum".to_owned(), json!(selection.checksum));
        data.insert("confirm_token".to_owned(), json!(selection.token()));
        data.insert("resources".to_owned(), Value::Array(rows));
        if let Some(state) = &self.outcome.state {
            data.insert("state_serial".to_owned(), json!(state.serial));
        }
        data.insert("next_command".to_owned(), json!(self.adopt_command(path, selection)));
        Value::Object(data)
    }

    fn saved_text(&self) -> Doc {
        let AdoptEnd::Saved { path, selection } = &self.outcome.end else { return Doc::new() };
        let mut doc = self.reviews();
        doc.blank();
        doc.line(format!(
            "Saved {} resources to {}; nothing is adopted yet.",
            selection.resources.len(),
            path.display()
        ));
        doc.pairs(0, [("token", selection.token())]);
        doc.line("Have the file reviewed, then adopt exactly that:");
        doc.line(format!("  streamt review {}", shell::quote(&path.display().to_string())));
        doc.line(format!("  {}", self.adopt_command(path, selection).join(" ")));
        doc
    }

    fn argv(&self, command: &str) -> Vec<String> {
        let project = self.project();
        let mut argv = vec!["streamt".to_owned(), command.to_owned(), "--project-dir".to_owned()];
        argv.push(shell::quote(&project.root.display().to_string()));
        if let Some(name) = project.environment.requested() {
            argv.extend(["--env".to_owned(), shell::quote(name)]);
        }
        argv
    }

    /// The plan that shows what applying would change.
    fn next_command(&self) -> Vec<String> {
        let file = project::reviewed_plan_path(self.project()).display().to_string();
        let mut argv = self.argv("plan");
        argv.extend(["--out".to_owned(), shell::quote(&file)]);
        argv
    }

    fn adopt_command(&self, path: &std::path::Path, selection: &Selection) -> Vec<String> {
        let mut argv = self.argv("adopt");
        argv.extend(["--selection".to_owned(), shell::quote(&path.display().to_string())]);
        argv.extend(["--confirm-token".to_owned(), selection.token()]);
        argv
    }

    /// An adoption that began has claimed nothing: it is given up, then asked for again.
    fn recovery_steps(&self) -> [String; 2] {
        let project = self.project();
        let id = self.outcome.operation_id.map(|id| id.to_string()).unwrap_or_default();
        let file = project.root.join(".streamt").join(format!("recovery-{id}.json")).display().to_string();
        [
            project::next_command(project, "state status"),
            format!(
                "{} --resolution abandoned_before_mutation --out {}",
                project::next_command(project, "state recovery-plan"),
                shell::quote(&file)
            ),
        ]
    }
}
