//! `streamt test`: what the declared tests say of columns, records and running jobs. Nothing is changed anywhere.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::assertions::{SAMPLE_SIZE, Status, Verdict, judge_job, judge_sample, judge_schema, type_word};
use crate::cli::args::ProjectArgs;
use crate::cli::context::Context;
use crate::cli::doc::{Doc, Line, Tone};
use crate::cli::live::Reader;
use crate::cli::outcome::{CmdResult, Failure, Outcome};
use crate::cli::output;
use crate::cli::project;
use crate::cli::sanitize;
use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::artifact::FlinkJobArtifact;
use crate::compiler::classified::Classified;
use crate::compiler::columns::Columns;
use crate::compiler::{Compiled, Output};
use crate::messages::samples::{SampleAnswer, SampleRequest};
use crate::messages::status::ObservedJob;
use crate::project::model::{Test, TestType};

use super::test_junit;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Kind {
    Schema,
    Sample,
    Continuous,
}

impl Kind {
    fn is_of(self, test_type: TestType) -> bool {
        match self {
            Self::Schema => test_type == TestType::Schema,
            Self::Sample => test_type == TestType::Sample,
            Self::Continuous => test_type == TestType::Continuous,
        }
    }
}

/// Run the tests of the project
#[derive(Debug, Args)]
pub struct TestArgs {
    #[command(flatten)]
    project: ProjectArgs,

    /// Only tests of this model or source
    #[arg(short, long, value_name = "NAME")]
    model: Option<String>,

    /// Only tests of this type
    #[arg(long = "type", value_name = "TYPE", value_enum)]
    kind: Option<Kind>,

    /// Show which models have tests; runs none
    #[arg(long, conflicts_with_all = ["fail_fast", "junit"])]
    coverage: bool,

    /// Stop behind the first test that fails
    #[arg(long)]
    fail_fast: bool,

    /// Write the results as JUnit XML to a file
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

pub fn run(context: &Context, args: &TestArgs) -> CmdResult {
    let junit = args.junit.as_ref().map(|file| context.directory.join(file));
    if let Some(path) = &junit {
        output::check(path)?;
    }
    let (compiled, warnings) = project::checked(project::open(context, &args.project)?)?;
    let declared = &compiled.project;
    if let Some(name) = &args.model {
        let known = || {
            declared.models.iter().map(|model| &model.name).chain(declared.sources.iter().map(|source| &source.name))
        };
        if !known().any(|known| known == name) {
            return Err(project::not_found(Code::E102ModelNotFound, "model", name, known().map(String::as_str)));
        }
    }
    let selected = |test: &&Test| {
        args.model.as_ref().is_none_or(|name| test.model == *name)
            && args.kind.is_none_or(|kind| kind.is_of(test.test_type))
    };
    let tests: Vec<&Test> = declared.tests.iter().filter(selected).collect();
    if args.coverage {
        return Ok(coverage(&compiled, args.model.as_deref(), &tests).warn(warnings));
    }
    let columns = Columns::of(declared, &compiled.models);
    let mut run = Run {
        classified: Classified::new(declared, &compiled.models, &columns),
        columns,
        compiled: &compiled,
        reader: Reader::new(context),
        warnings,
    };
    let verdicts = match args.fail_fast {
        false => run.all(&tests)?,
        true => {
            let mut verdicts = Vec::new();
            for test in &tests {
                verdicts.extend(run.all(std::slice::from_ref(test))?);
                if verdicts.last().is_some_and(Verdict::counts_as_failed) {
                    break;
                }
            }
            verdicts
        }
    };
    let warnings = run.warnings;
    let verdicts: Vec<(&'static str, Verdict)> =
        tests.iter().map(|test| type_word(test.test_type)).zip(verdicts.into_iter().map(shown)).collect();
    if let Some(path) = &junit {
        output::write(path, &test_junit::document(&declared.name, &verdicts))?;
    }
    finish(verdicts, tests.len(), warnings)
}

struct Run<'a> {
    compiled: &'a Arc<Compiled>,
    columns: Columns,
    classified: Classified,
    reader: Reader<'a>,
    warnings: Diagnostics,
}

/// What a test needs before it can be judged.
enum Need {
    Nothing,
    Records(SampleRequest),
    Unreadable(String),
}

impl Run<'_> {
    /// In the order of the tests; topics are read side by side.
    fn all(&mut self, tests: &[&Test]) -> Result<Vec<Verdict>, Failure> {
        let needs: Vec<Need> = tests.iter().map(|test| self.need(test)).collect();
        let requests = needs.iter().filter_map(|need| match need {
            Need::Records(request) => Some(request.clone()),
            Need::Nothing | Need::Unreadable(_) => None,
        });
        let mut answers = self.reader.read(&self.compiled.project, requests.collect())?.into_iter();
        let jobs: Vec<_> = tests.iter().filter_map(|test| self.job(test).cloned()).collect();
        let jobs = self.reader.observe_jobs(&self.compiled.project, jobs)?;
        let mut verdicts = Vec::new();
        for (test, need) in tests.iter().zip(needs) {
            verdicts.push(match need {
                Need::Unreadable(why) => Verdict::error(test, why),
                Need::Nothing => self.judge(test, &jobs),
                Need::Records(request) => match answers.next() {
                    Some(answer) => self.judge_records(test, &request, answer),
                    None => Verdict::error(test, "the runtime ended before the records were read"),
                },
            });
        }
        Ok(verdicts)
    }

    fn need(&self, test: &Test) -> Need {
        if test.test_type != TestType::Sample {
            return Need::Nothing;
        }
        let project = &self.compiled.project;
        let source = project.sources.iter().find(|source| source.name == test.model);
        let (topic, servers) = match (source, self.compiled.model(&test.model).map(|model| &model.output)) {
            (Some(source), _) => match &source.cluster {
                None => (source.topic.clone(), None),
                Some(cluster) => {
                    return Need::Unreadable(format!("'{}' is on cluster '{cluster}', which is not read", test.model));
                }
            },
            (None, Some(Some(Output::Kafka(topic)))) => (topic.clone(), None),
            (None, Some(Some(Output::Gateway(alias)))) => {
                let gateway = project.runtime.gateway.as_ref();
                match gateway.and_then(|gateway| gateway.proxy_bootstrap.clone()) {
                    Some(servers) => (alias.clone(), Some(servers)),
                    None => {
                        let why = "is a virtual topic, and runtime.conduktor.gateway names no proxy_bootstrap";
                        return Need::Unreadable(format!("'{}' {why}", test.model));
                    }
                }
            }
            (None, Some(None) | None) => return Need::Unreadable(format!("'{}' has no topic to read", test.model)),
        };
        Need::Records(SampleRequest { topic, servers, limit: test.sample_size.unwrap_or(SAMPLE_SIZE) as usize })
    }

    /// The job of a continuous test; none when none of its assertions is executed.
    fn job(&self, test: &Test) -> Option<&FlinkJobArtifact> {
        let own = |job: &&FlinkJobArtifact| job.name.strip_prefix("test_") == Some(test.name.as_str());
        let continuous = test.test_type == TestType::Continuous;
        self.compiled.artifacts.test_jobs.iter().find(own).filter(|_| continuous)
    }

    fn judge(&self, test: &Test, jobs: &Result<BTreeMap<String, ObservedJob>, Diagnostic>) -> Verdict {
        match test.test_type {
            TestType::Schema | TestType::Sample => {
                let table = self.columns.table(&test.model);
                judge_schema(test, table.and_then(|table| table.columns.as_deref()))
            }
            TestType::Continuous => {
                let Some(job) = self.job(test) else { return judge_job(test, None, None) };
                match jobs {
                    Err(failure) => Verdict::error(test, format!("{}: {}", failure.code, failure.message)),
                    Ok(jobs) => {
                        let seen = jobs.get(&job.name);
                        let live = seen.and_then(|seen| seen.live.job.as_ref());
                        let state = live.map(|live| (live.state.as_str(), live.tasks.all_run()));
                        let confidential = !self.classified.of(&test.model).is_empty();
                        let why = seen.and_then(|seen| seen.why(confidential));
                        judge_job(test, Some((&job.name, state)), why.as_deref())
                    }
                }
            }
        }
    }

    fn judge_records(&mut self, test: &Test, request: &SampleRequest, answer: SampleAnswer) -> Verdict {
        let (sample, schemas) = match answer {
            Ok(answer) => answer,
            Err(failure) => return Verdict::error(test, format!("{}: {}", failure.code, failure.message)),
        };
        if let Some(why) = sample.cut_short {
            let message =
                format!("Test '{}': {} of {} records were read: {why}", test.name, sample.records.len(), request.limit);
            self.warnings.push(test.origin.mark("", Diagnostic::new(Code::W148SampleShort, message)));
        }
        judge_sample(test, &sample, &schemas, self.classified.of(&test.model))
    }
}

/// Messages hold values of records.
fn shown(mut verdict: Verdict) -> Verdict {
    let all = verdict.errors.iter_mut().chain(&mut verdict.warnings).chain(&mut verdict.message);
    for text in all {
        *text = sanitize::free_text(text);
    }
    verdict
}

fn finish(verdicts: Vec<(&'static str, Verdict)>, selected: usize, warnings: Diagnostics) -> CmdResult {
    let count = |status: Status| verdicts.iter().filter(|(_, verdict)| verdict.status == status).count();
    let failed = verdicts.iter().filter(|(_, verdict)| verdict.counts_as_failed()).count();
    let (passed, skipped) = (count(Status::Passed), count(Status::Skipped));
    let results: Vec<&Verdict> = verdicts.iter().map(|(_, verdict)| verdict).collect();
    let data = json!({ "results": results, "passed": passed, "failed": failed, "total": results.len() });
    let mut text = Doc::new();
    for (kind, verdict) in &verdicts {
        let (tone, word) = match verdict.status {
            Status::Passed => (Tone::Create, "passed"),
            Status::Failed => (Tone::Delete, "failed"),
            Status::Skipped => (Tone::Unchanged, "skipped"),
            Status::Error => (Tone::Delete, "error"),
        };
        let records = verdict.sample_size.map_or_else(String::new, |count| format!(", {count} records"));
        text.line(Line::new().tone(tone, format!("{word:<8}")).plain(format!("{} ({kind}{records})", verdict.name)));
        let why = verdict.message.iter().filter(|_| verdict.status == Status::Skipped);
        for line in verdict.errors.iter().chain(&verdict.warnings).chain(why) {
            text.text(4, line.clone());
        }
    }
    if selected == 0 {
        text.line("No test is declared for this selection.");
    } else {
        text.blank().line(format!("{passed} passed, {failed} failed, {skipped} skipped"));
    }
    let left = selected - verdicts.len();
    if left > 0 {
        text.line(format!("{left} not run: --fail-fast"));
    }
    let outcome = Outcome::new(&data, text).warn(warnings);
    if failed == 0 {
        return Ok(outcome);
    }
    let message = format!("{failed} of {} tests failed", verdicts.len());
    Err(outcome.fail(Diagnostic::new(Code::E906TestsFailed, message).suggest("Read the errors of each result")))
}

fn coverage(compiled: &Compiled, only: Option<&str>, tests: &[&Test]) -> Outcome {
    let models = compiled.project.models.iter().filter(|model| only.is_none_or(|name| model.name == name));
    let rows: Vec<(&str, bool)> =
        models.map(|model| (model.name.as_str(), tests.iter().any(|test| test.model == model.name))).collect();
    let (covered, total) = (rows.iter().filter(|(_, covered)| *covered).count(), rows.len());
    let percent = (covered * 100).checked_div(total).unwrap_or(100);
    let list: Vec<_> = rows.iter().map(|(model, covered)| json!({ "model": model, "covered": covered })).collect();
    let data = json!({ "coverage": list, "covered": covered, "total": total, "percent": percent });
    let mut text = Doc::new();
    let word = |covered: bool| if covered { "yes" } else { "no" };
    if rows.is_empty() {
        let of_sources = match tests.len() {
            0 => String::new(),
            count => format!("; tests of sources: {count}"),
        };
        text.line(format!("There is no model to cover{of_sources}."));
        return Outcome::new(&data, text);
    }
    text.table(
        &["MODEL", "TESTED"],
        rows.iter().map(|(model, covered)| vec![(*model).to_owned(), word(*covered).to_owned()]).collect(),
    );
    text.blank().line(format!("{covered} of {total} models have tests ({percent} %)"));
    Outcome::new(&data, text)
}
