//! SQL macros: `macros/<name>.sql.j2`, rendered with the parameters of one model and nothing else. No files, no environment,
//! no includes; fuel and output are bounded.

use std::io;

use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior, Value};

use crate::codes::{Code, Diagnostic};
use crate::project::model::{Model, Project};

/// Bytes of SQL that one rendering may produce.
pub const OUTPUT_LIMIT: usize = 1 << 20;

/// Instructions that one rendering may take.
const FUEL: u64 = 1_000_000;

const RECURSION_LIMIT: usize = 64;

/// Renders a model's macro. E119 names model and macro.
pub fn render(project: &Project, model: &Model, name: &str) -> Result<String, Diagnostic> {
    let failed = |why: String| {
        let diagnostic =
            Diagnostic::new(Code::E119CompileFailed, format!("macro '{name}' of model '{}': {why}", model.name));
        model.origin.mark("macro", diagnostic)
    };
    let Some(template) = project.macros.get(name) else {
        let hint = crate::codes::suggest::hint(name, "macro", project.macros.keys().map(String::as_str));
        return Err(failed(format!("there is no macros/{name}.sql.j2")).suggest_opt(hint));
    };
    let environment = environment();
    let mut output = Bounded(Vec::new());
    let context = Value::from_pairs(model.params.iter().map(|(key, value)| (key.as_str(), value.as_str())));
    let rendered = environment
        .template_from_named_str(name, template)
        .and_then(|template| template.render_captured_to(context, &mut output).map(drop));
    if let Err(error) = rendered {
        return Err(failed(explanation(&error)));
    }
    String::from_utf8(output.0).map_err(|_| failed("the result is no UTF-8 text".to_owned()))
}

fn environment<'a>() -> Environment<'a> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(RECURSION_LIMIT);
    environment.add_function("source", |name: String| call("source", &name));
    environment.add_function("ref", |name: String| call("ref", &name));
    environment
}

/// The call text; its grammar is checked where all SQL is.
fn call(kind: &str, name: &str) -> String {
    format!("{{{{ {kind}(\"{name}\") }}}}")
}

fn explanation(error: &minijinja::Error) -> String {
    let line = error.line().map(|line| format!(" (line {line} of the macro)")).unwrap_or_default();
    let why = match error.kind() {
        ErrorKind::OutOfFuel => "it takes too many steps".to_owned(),
        ErrorKind::WriteFailure => format!("its result is larger than {OUTPUT_LIMIT} bytes"),
        kind => match error.detail() {
            Some(detail) => format!("{kind}: {detail}"),
            None => kind.to_string(),
        },
    };
    format!("{why}{line}")
}

struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > OUTPUT_LIMIT {
            return Err(io::Error::other("output limit"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::testing;

    fn rendered(template: &str, params: &[(&str, &str)]) -> Result<String, String> {
        let mut project = testing::project("shop");
        project.macros.insert("clean".into(), template.into());
        let mut model = testing::model("orders");
        model.macro_name = Some("clean".into());
        model.params = params.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        render(&project, &model, "clean").map_err(|error| {
            assert_eq!(error.code, Code::E119CompileFailed);
            assert!(error.message.contains("'clean'") && error.message.contains("'orders'"), "{}", error.message);
            error.message
        })
    }

    #[test]
    fn a_macro_renders_its_parameters_and_calls() {
        let template = "SELECT {% for c in columns|split(',') %}{{ c }}{% if not loop.last %}, {% endif %}{% endfor %}\n\
                        FROM {{ source(input) }} JOIN {{ ref('x') }}\n";
        let sql = rendered(template, &[("columns", "a,b"), ("input", "orders_raw")]).unwrap();
        assert_eq!(sql, "SELECT a, b\nFROM {{ source(\"orders_raw\") }} JOIN {{ ref(\"x\") }}");
        assert_eq!(rendered("'{{ v }}'", &[("v", "<&>'")]).unwrap(), "'<&>''");
    }

    #[test]
    fn what_a_macro_may_not_do_is_refused() {
        for (template, part) in [
            ("{{ missing }}", "undefined"),
            ("{% for x in range(100000) %}{% for y in range(100000) %}{% endfor %}{% endfor %}", "too many steps"),
            ("{% for x in range(9000) %}{{ 'x' * 200 }}{% endfor %}", "larger than"),
            ("{% include 'other' %}", "line 1"),
            ("{% import 'other' as o %}", "line 1"),
            ("{{ 'a", "line 1"),
            ("{{ env('HOME') }}", "line 1"),
            ("{{ source() }}", "missing argument"),
        ] {
            let message = rendered(template, &[]).unwrap_err();
            assert!(message.contains(part), "{template}: {message}");
        }
    }

    #[test]
    fn an_unknown_macro_is_named_with_the_known_ones() {
        let mut project = testing::project("shop");
        project.macros.insert("clean".into(), String::new());
        let error = render(&project, &testing::model("m"), "claen").unwrap_err();
        assert_eq!(error.suggestion.as_deref(), Some("Did you mean 'clean'?"));
    }
}
