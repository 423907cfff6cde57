//! The file of an import: whole or absent whatever happens, and never over another.

use crate::adoption::ground::create_topic;
use crate::interruption::world::{Store, World};

/// ADO-037, ADO-038: killed at any moment, the project is as it was or has the whole file; what is left beside it is no declaration.
#[test]
fn an_import_that_is_killed_leaves_the_whole_file_or_none() {
    let world = World::new("importkill", Store::Local);
    create_topic(&format!("{}.a", world.prefix), 1, &[]);
    world.settle();
    world.declare("  []\n");
    let line = |file: &str| format!("import --include {}.* --output-file sources/{file}.yml", world.prefix);
    let (run, moments) = world.trace(&line("first"));
    run.exits(0);
    let whole = std::fs::read_to_string(world.workspace.path("sources/first.yml")).expect("a file");
    std::fs::remove_file(world.workspace.path("sources/first.yml")).expect("removed");
    let names: Vec<&str> = moments.iter().map(|moment| moment.name.as_str()).collect();
    assert_eq!(names, ["import.created", "import.flushed", "import.linked", "import.done"]);
    for (at, moment) in moments.iter().enumerate() {
        let path = world.workspace.path(&format!("sources/k{at}.yml"));
        assert!(world.killed_at(&line(&format!("k{at}")), moment), "{moment}");
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                assert!(at >= 2, "{moment}");
                assert_eq!(text, whole, "{moment}");
                std::fs::remove_file(&path).expect("removed");
            }
            Err(_) => assert!(at < 2, "{moment}"),
        }
        world.run("validate").exits(0);
    }
    assert_eq!(world.data(&line("last"))["written"], true, "what a killed import left is in nobody's way");
    world.run("validate").exits(0);
}

/// ADO-037, ADO-038: of several at once exactly one makes the file.
#[test]
fn of_two_imports_at_once_one_makes_the_file() {
    let world = World::new("importrace", Store::Local);
    create_topic(&format!("{}.a", world.prefix), 1, &[]);
    world.settle();
    world.declare("  []\n");
    let line = format!("import --include {}.*", world.prefix);
    let runs: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| world.run(&line))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let written = runs.iter().filter(|run| run.exit == 0 && run.json()["data"]["written"] == true).count();
    assert_eq!(written, 1);
    for run in runs.iter().filter(|run| run.exit != 0) {
        assert_eq!(run.errors()[0].0, "E702_IMPORT_TARGET_EXISTS", "{}", run.stdout);
    }
    let left = std::fs::read_dir(world.workspace.path("sources")).expect("a directory").count();
    assert_eq!(left, 1, "no stage is left");
    world.run("validate").exits(0);
}
