//! Results of tests as JUnit XML, the form that build servers read.

use std::fmt::Write;

use crate::assertions::{Status, Verdict};

/// One suite; `verdicts` with the type of each test.
pub(super) fn document(project: &str, verdicts: &[(&'static str, Verdict)]) -> String {
    let count = |status: Status| verdicts.iter().filter(|(_, verdict)| verdict.status == status).count();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        verdicts.len(),
        count(Status::Failed),
        count(Status::Error),
        count(Status::Skipped)
    );
    let name = escaped(project);
    let _ = writeln!(xml, "<testsuites name=\"{name}\" {counts}>\n  <testsuite name=\"{name}\" {counts}>");
    for (kind, verdict) in verdicts {
        let _ = write!(xml, "    <testcase classname=\"{kind}\" name=\"{}\"", escaped(&verdict.name));
        let mut inner = String::new();
        match verdict.status {
            Status::Passed => {}
            Status::Failed => element(&mut inner, "failure", &verdict.errors),
            Status::Error => element(&mut inner, "error", &verdict.errors),
            Status::Skipped => {
                let why = verdict.message.as_deref().unwrap_or_default();
                let _ = writeln!(inner, "      <skipped message=\"{}\"/>", escaped(why));
            }
        }
        if !verdict.warnings.is_empty() {
            let _ = writeln!(inner, "      <system-out>{}</system-out>", escaped(&verdict.warnings.join("\n")));
        }
        match inner.is_empty() {
            true => xml.push_str("/>\n"),
            false => {
                let _ = write!(xml, ">\n{inner}    </testcase>\n");
            }
        }
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn element(xml: &mut String, name: &str, lines: &[String]) {
    let first = lines.first().map_or("", String::as_str);
    let _ = writeln!(xml, "      <{name} message=\"{}\">{}</{name}>", escaped(first), escaped(&lines.join("\n")));
}

/// Text of XML 1.0, which has no place for control characters.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(name: &str, status: Status) -> Verdict {
        Verdict {
            name: name.into(),
            status,
            errors: Vec::new(),
            warnings: Vec::new(),
            sample_size: None,
            job_status: None,
            message: None,
        }
    }

    #[test]
    fn each_status_has_its_element_and_text_cannot_break_out() {
        let failed =
            Verdict { errors: vec!["a < b & \"c\"".into(), "two\u{1b}[0m".into()], ..verdict("f", Status::Failed) };
        let skipped = Verdict { message: Some("no".into()), ..verdict("s", Status::Skipped) };
        let error = Verdict { errors: vec!["gone".into()], warnings: vec!["w".into()], ..verdict("e", Status::Error) };
        let again = Verdict { errors: vec!["no".into()], ..verdict("g", Status::Failed) };
        let list = [
            ("schema", verdict("p", Status::Passed)),
            ("sample", failed),
            ("schema", again),
            ("continuous", skipped),
            ("sample", error),
        ];
        let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<testsuites name=\"shop\" tests=\"5\" failures=\"2\" errors=\"1\" skipped=\"1\">
  <testsuite name=\"shop\" tests=\"5\" failures=\"2\" errors=\"1\" skipped=\"1\">
    <testcase classname=\"schema\" name=\"p\"/>
    <testcase classname=\"sample\" name=\"f\">
      <failure message=\"a &lt; b &amp; &quot;c&quot;\">a &lt; b &amp; &quot;c&quot;&#10;two\u{fffd}[0m</failure>
    </testcase>
    <testcase classname=\"schema\" name=\"g\">
      <failure message=\"no\">no</failure>
    </testcase>
    <testcase classname=\"continuous\" name=\"s\">
      <skipped message=\"no\"/>
    </testcase>
    <testcase classname=\"sample\" name=\"e\">
      <error message=\"gone\">gone</error>
      <system-out>w</system-out>
    </testcase>
  </testsuite>
</testsuites>
";
        assert_eq!(document("shop", &list), expected);
    }
}
