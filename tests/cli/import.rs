//! `import` without a service: where it may write, before anybody is asked, and that nothing is written then.

use crate::harness::Workspace;

const PROJECT: &str = "apiVersion: streamt.dev/v1alpha1
project: {name: shop}
runtime: {kafka: {bootstrap_servers: '127.0.0.1:1'}}
";

/// ADO-035: one new YAML file directly inside its directory, by its words alone.
#[test]
fn the_file_is_a_direct_child_of_its_directory() {
    let workspace = Workspace::project(PROJECT);
    workspace.write("sources/.keep", "");
    let before = workspace.snapshot();
    let outside = std::env::temp_dir().join("imported.yml");
    for file in [
        "imported.yml",
        "models/imported.yml",
        "sources/deep/imported.yml",
        "sources/../imported.yml",
        "sources/../sources/imported.yml",
        "../imported.yml",
        "sources/imported.json",
        "sources/imported",
        "sources/.yml",
        "sources/.hidden.yml",
        "sources",
        &outside.display().to_string(),
    ] {
        let run = workspace.run(&format!("import --output-file {file} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, "E704_IMPORT_PATH_INVALID", "{file}: {}", run.stdout);
        assert_eq!(workspace.snapshot(), before, "{file}");
    }
    for file in ["sources/x.yml", "./sources/x.yaml", &workspace.path("sources/x.yml").display().to_string()] {
        let run = workspace.run(&format!("import --output-file {file} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, "E406_CONNECTION_REFUSED", "{file}: {}", run.stdout);
    }
    let run = workspace.run("import --adoptable --output-file sources/x.yml -o json").exits(1);
    assert_eq!(run.errors()[0].0, "E704_IMPORT_PATH_INVALID");
    let run = workspace.run("import --adoptable --output-file models/x.yml -o json").exits(1);
    assert_eq!(run.errors()[0].0, "E406_CONNECTION_REFUSED");
    assert_eq!(workspace.snapshot(), before, "a cluster that is not there imports nothing");

    let linked = Workspace::project(PROJECT);
    std::fs::create_dir(linked.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(linked.path("elsewhere"), linked.path("sources")).unwrap();
    let run = linked.run("import -o json").exits(1);
    assert_eq!(run.errors()[0].0, "E704_IMPORT_PATH_INVALID", "{}", run.stdout);
}

/// ADO-030: the environment that is asked for is the one that is read, and a project that cannot be read imports nothing.
#[test]
fn an_import_needs_a_project_and_its_environment() {
    let workspace = Workspace::new();
    assert_eq!(workspace.run("import -o json").exits(1).errors()[0].0, "E501_PARSE_ERROR");
    let workspace = Workspace::project("apiVersion: streamt.dev/v1alpha1\nproject: {name: shop}\n").file(
        "environments/dev.yml",
        "environment: {name: dev}\nruntime: {kafka: {bootstrap_servers: '127.0.0.1:1'}}\n",
    );
    assert_eq!(workspace.run("import -o json").exits(1).errors()[0].0, "E503_ENVIRONMENT_ERROR");
    assert_eq!(workspace.run("import -e dev -o json").exits(1).errors()[0].0, "E406_CONNECTION_REFUSED");
    assert!(!workspace.path("sources").exists());
}

/// Each option where it means something, and one subject for a topic.
#[test]
fn options_that_contradict_each_other_are_refused() {
    let workspace = Workspace::project(PROJECT);
    let before = workspace.snapshot();
    for options in [
        "--kind subject",
        "--kind connector --subject a=b",
        "--kind connector --no-schemas",
        "--kind connector --schemas",
        "--kind connector --wide-integers",
        "--subject a",
        "--subject =b",
        "--subject a=",
        "--subject a=b --subject a=c",
        "--subject a=b --no-schemas",
    ] {
        let run = workspace.run(&format!("import {options} -o json")).exits(2);
        assert_eq!(run.errors()[0].0, "E902_USAGE", "{options}: {}", run.stdout);
    }
    assert_eq!(workspace.snapshot(), before);
}

/// Connectors need their worker cluster, and their file stands among the models.
#[test]
fn an_import_of_connectors_needs_a_default_cluster() {
    let workspace = Workspace::project(PROJECT);
    assert_eq!(workspace.run("import --kind connector -o json").exits(1).errors()[0].0, "E205_CONNECT_REQUIRED");
    let connect = "  connect: {default: main, clusters: {main: {rest_url: 'http://127.0.0.1:1'}}}\n";
    let workspace = Workspace::project(
        &PROJECT.replace("runtime: {kafka: {bootstrap_servers: '127.0.0.1:1'}}\n", &format!("runtime:\n{connect}")),
    );
    let before = workspace.snapshot();
    let run = workspace.run("import --kind connector -o json").exits(1);
    assert_eq!(run.errors()[0].0, "E406_CONNECTION_REFUSED", "{}", run.stdout);
    for file in ["sources/x.yml", "models/deep/x.yml", "x.yml"] {
        let run = workspace.run(&format!("import --kind connector --output-file {file} -o json")).exits(1);
        assert_eq!(run.errors()[0].0, "E704_IMPORT_PATH_INVALID", "{file}");
    }
    assert_eq!(workspace.snapshot(), before);
}
