//! What the process gives a command: read once, after the arguments were understood.
#![expect(clippy::disallowed_methods, reason = "this is where the environment is read")]

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;

use super::args::{ColorChoice, GlobalArgs, OutputFormat};

/// Everything of the process that a command may depend on.
#[derive(Clone, Debug)]
pub struct Context {
    pub json: bool,
    pub quiet: bool,
    pub verbose: u8,
    pub log_json: bool,
    /// The process environment; names or values that are not UTF-8 are left out.
    pub variables: BTreeMap<String, String>,
    /// The working directory.
    pub directory: PathBuf,
    pub stdout: Stream,
    pub stderr: Stream,
    pub stdin_terminal: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Stream {
    pub terminal: bool,
    pub colour: bool,
}

impl Context {
    pub fn read(global: &GlobalArgs) -> Self {
        let variables: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let choice = if global.no_color { ColorChoice::Never } else { global.color };
        let stream = |terminal: bool| Stream { terminal, colour: colour(choice, terminal, &variables) };
        Self {
            json: global.output == OutputFormat::Json,
            quiet: global.quiet,
            verbose: global.verbose,
            log_json: global.log_format == OutputFormat::Json,
            stdout: stream(std::io::stdout().is_terminal()),
            stderr: stream(std::io::stderr().is_terminal()),
            stdin_terminal: std::io::stdin().is_terminal(),
            directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            variables,
        }
    }

    /// Whether a question can be asked and answered.
    pub fn interactive(&self) -> bool {
        !self.json && self.stdin_terminal && self.stderr.terminal
    }
}

fn colour(choice: ColorChoice, terminal: bool, variables: &BTreeMap<String, String>) -> bool {
    let set = |name: &str| variables.get(name).is_some_and(|value| !value.is_empty());
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if set("CLICOLOR_FORCE") && variables["CLICOLOR_FORCE"] != "0" => true,
        ColorChoice::Auto => {
            terminal
                && !set("NO_COLOR")
                && !set("STREAMT_NO_COLOR")
                && variables.get("TERM").is_none_or(|terminal| terminal != "dumb")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_beats_the_environment_and_force_beats_no_color() {
        let variables = |pairs: &[(&str, &str)]| pairs.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
        let none = variables(&[]);
        assert!(colour(ColorChoice::Auto, true, &none));
        assert!(!colour(ColorChoice::Auto, false, &none));
        assert!(!colour(ColorChoice::Auto, true, &variables(&[("NO_COLOR", "1")])));
        assert!(colour(ColorChoice::Auto, true, &variables(&[("NO_COLOR", "")])));
        assert!(!colour(ColorChoice::Auto, true, &variables(&[("STREAMT_NO_COLOR", "1")])));
        assert!(!colour(ColorChoice::Auto, true, &variables(&[("TERM", "dumb")])));
        assert!(colour(ColorChoice::Auto, false, &variables(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")])));
        assert!(!colour(ColorChoice::Auto, false, &variables(&[("CLICOLOR_FORCE", "0")])));
        assert!(colour(ColorChoice::Always, false, &variables(&[("NO_COLOR", "1")])));
        assert!(!colour(ColorChoice::Never, true, &variables(&[("CLICOLOR_FORCE", "1")])));
    }
}
