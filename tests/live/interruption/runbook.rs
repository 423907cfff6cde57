//! The runbook for a person on call, followed by its letter: the commands are read from the guide.

use super::world::{Moment, STORES, World};

const GUIDE: &str = include_str!("../../../docs/guides/interrupted.md");
const MODELS: &str = "  - {name: a, description: d, topic: {name: PREFIX.a, partitions: 1, replication_factor: 1}}
  - {name: b, description: d, topic: {name: PREFIX.b, partitions: 1, replication_factor: 1}, schema: {subject: PREFIX.b-value, format: avro, definition: '\"string\"'}}
  - {name: c, description: d, topic: {name: PREFIX.c, partitions: 1, replication_factor: 1}}
";

/// Number of the step, and its commands without the name of the program.
fn steps() -> Vec<(usize, Vec<String>)> {
    let mut steps = Vec::new();
    for section in GUIDE.split("\n## ").skip(1) {
        let number = section.split('.').next().and_then(|number| number.parse().ok()).expect("a numbered step");
        let blocks = section.split("```sh\n").skip(1).map(|rest| rest.split("```").next().expect("an end"));
        let commands = blocks
            .flat_map(str::lines)
            .map(|line| line.strip_prefix("streamt ").unwrap_or_else(|| panic!("another program: {line}")).to_owned());
        steps.push((number, commands.collect()));
    }
    steps
}

/// REC-017, REC-021, REC-028, REC-029, REC-031, REC-038: on every store, the guide leads from the interruption to a plan of what is left.
#[test]
fn the_runbook_of_an_interrupted_apply_leads_out_of_it() {
    for store in STORES {
        let world = World::new("runbook", store);
        world.declare(MODELS);
        // Two answers came, the schema's and the topics'; the second was never recorded.
        assert!(world.killed_at("apply", &Moment::new("request.answered", 1)));
        let mut printed = String::new();
        let mut met = Vec::new();
        for (step, commands) in steps() {
            if step == 3 {
                world.settle();
            }
            for command in commands {
                let line = match command.contains(" ID ") {
                    // The guide says to run the command that was printed; it is the one that the guide shows.
                    true => {
                        let given =
                            printed.lines().map(str::trim).find(|line| line.starts_with("streamt state recover "));
                        let given = given.expect("the command of step 6").strip_prefix("streamt ").expect("checked");
                        let shown: Vec<&str> = command.split(' ').collect();
                        let mut given: Vec<&str> = given.split(' ').collect();
                        let directory = given.iter().position(|word| *word == "--project-dir").expect("where it is");
                        given.drain(directory..directory + 2);
                        assert_eq!(shown.len(), given.len(), "{given:?}");
                        let differing = shown.iter().zip(&given).filter(|(shown, given)| shown != given);
                        let places: Vec<&str> =
                            differing.map(|(shown, _)| *shown).filter(|word| !word.ends_with(".json")).collect();
                        assert_eq!(places, ["ID", "SHA256"], "{given:?}");
                        given.join(" ")
                    }
                    false => command,
                };
                let run = world.workspace.run(&line).exits(0);
                match step {
                    2 => {
                        let id = world.operation()["operation_id"].as_str().expect("an id").to_owned();
                        assert!(run.stdout.contains(&format!("operation: {id} interrupted")), "{}", run.stdout);
                    }
                    4 => {
                        assert!(run.stdout.contains("/schema/b register present candidate\n"), "{}", run.stdout);
                        assert_eq!(run.stdout.matches(" absent prior\n").count(), 3, "{}", run.stdout);
                        printed.clone_from(&run.stdout);
                    }
                    6 => assert!(run.stdout.contains("The operation is resolved"), "{}", run.stdout),
                    7 if line == "plan" => assert!(run.stdout.contains("3 to create"), "{}", run.stdout),
                    7 => assert!(run.stdout.contains("none pending"), "{}", run.stdout),
                    _ => {}
                }
                met.push((step, line.split(' ').take(2).collect::<Vec<_>>().join(" ")));
            }
        }
        let met: Vec<usize> = met.into_iter().map(|(step, _)| step).collect();
        assert_eq!(met, [1, 2, 4, 5, 6, 7, 7], "{store:?}");
        world.run("apply").exits(0);
        world.run("plan --detailed-exitcode").exits(0);
    }
}
