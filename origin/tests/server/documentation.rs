//! docs/origin.md: what it shows as input is taken.

use std::path::Path;

use wirespeed_origin::{Action, Fault, Model, Schedule};

fn text() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/origin.md")).unwrap()
}

/// The contents of every block that is fenced as this.
fn blocks<'a>(text: &'a str, kind: &str) -> Vec<&'a str> {
    let fence = format!("```{kind}\n");
    text.split(&*fence).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn models_and_schedules_and_faults_are_read_as_they_stand_there() {
    let text = text();
    let models = blocks(&text, "toml model");
    assert_eq!(models.len(), 3);
    for model in models {
        assert_ne!(model.parse::<Model>().unwrap(), Model::new(), "{model}");
    }
    for (kind, count) in [("toml faults", 1), ("json faults", 1)] {
        let schedules = blocks(&text, kind);
        assert_eq!(schedules.len(), count);
        for schedule in schedules {
            assert_ne!(schedule.parse::<Schedule>().unwrap(), Schedule::new(7), "{schedule}");
        }
    }
    for fault in blocks(&text, "text fault") {
        fault.trim().parse::<Fault>().unwrap();
    }
}

#[test]
fn every_action_of_the_table_is_one_and_none_is_left_out() {
    let text = text();
    let actions = text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let actions: Vec<_> = actions.collect();
    for action in &actions {
        action.parse::<Action>().unwrap_or_else(|error| panic!("{action}: {error}"));
    }
    let listed = "explode".parse::<Action>().unwrap_err();
    let listed = listed.split("there are ").nth(1).unwrap().split(", ");
    for action in listed {
        let name = action.split([':', '[']).next().unwrap();
        assert!(actions.iter().any(|shown| shown.split(':').next() == Some(name)), "{name} is not in the table");
    }
}
