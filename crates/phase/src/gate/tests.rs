//! What each check counts, and how much it weighs.

use super::{Artifacts, AuthorRule, CountedWork, Facts, GateCheck, GateResult, OpenWork, Requirement, Tier, evaluate};

fn requirement(check: GateCheck, tier: Tier) -> Requirement {
    Requirement { check, phase: None, tier, by: AuthorRule::Any }
}

fn unfinished(kind: &'static str) -> OpenWork {
    let id = "0198c0de-0000-7000-8000-00000a000001".to_owned();
    OpenWork {
        kind,
        short_id: "0a000001".to_owned(),
        id,
        name: None,
        status: "active",
        command: String::new(),
        other_commands: Vec::new(),
    }
}

/// Agents and dispatches that have not ended, and whether others did.
fn work(agents: usize, dispatches: usize, has_ended: bool) -> Facts {
    let unfinished = [vec![unfinished("agent"); agents], vec![unfinished("dispatch"); dispatches]].concat();
    Facts::Work(CountedWork { unfinished, has_ended })
}

fn artifacts(present: i64) -> Facts {
    Facts::Artifacts(Artifacts { present, missing: Vec::new() })
}

fn absent(present: i64, missing: &[&str]) -> Facts {
    Facts::Artifacts(Artifacts { present, missing: missing.iter().map(|path| (*path).to_owned()).collect() })
}

fn newest(is_pass: bool) -> Facts {
    Facts::NewestVerdict(Some(("0a000001".to_owned(), is_pass)))
}

#[test]
fn the_strongest_failed_tier_decides() {
    let soft = (requirement(GateCheck::ArtifactExists, Tier::Soft), artifacts(0));
    let hard = (requirement(GateCheck::AgentsComplete, Tier::Hard), work(2, 0, true));
    let held = (requirement(GateCheck::VerdictExists, Tier::Hard), newest(true));

    let verdict = evaluate(&[soft.clone(), hard.clone(), held.clone()], Tier::Hard);
    assert_eq!((verdict.result, verdict.tier), (GateResult::Fail, Tier::Hard));
    assert!(verdict.blocks());
    assert_eq!(verdict.complaint(), "no artifact in the run; 2 active agents and no unfinished dispatch in the run");

    let verdict = evaluate(&[soft.clone(), held.clone()], Tier::Hard);
    assert_eq!((verdict.result, verdict.tier), (GateResult::Fail, Tier::Soft));
    assert!(!verdict.blocks());

    let verdict = evaluate(&[soft, hard], Tier::Soft);
    assert_eq!((verdict.result, verdict.tier), (GateResult::Fail, Tier::Soft));

    let verdict = evaluate(&[held], Tier::Hard);
    assert_eq!((verdict.result, verdict.tier), (GateResult::Pass, Tier::Hard));
}

#[test]
fn each_check_counts_what_it_asks_for() {
    let weighed = |check, facts| {
        let verdict = evaluate(&[(requirement(check, Tier::Hard), facts)], Tier::Hard);
        let condition = verdict.conditions.into_iter().next().unwrap();
        assert_eq!(condition.holds, verdict.result == GateResult::Pass);
        (verdict.result.as_str(), condition.count, condition.detail)
    };
    for (check, facts, says) in [
        (GateCheck::ArtifactExists, artifacts(0), ("fail", 0, "no artifact in the run")),
        (GateCheck::ArtifactExists, artifacts(2), ("pass", 2, "2 artifacts in the run")),
        (
            GateCheck::AgentsComplete,
            work(0, 0, true),
            ("pass", 0, "no active agent and no unfinished dispatch in the run"),
        ),
        (GateCheck::AgentsComplete, work(0, 0, false), ("pass", 0, "no work was recorded in this phase")),
        (
            GateCheck::AgentsComplete,
            work(1, 0, false),
            ("fail", 1, "1 active agent and no unfinished dispatch in the run"),
        ),
        (
            GateCheck::AgentsComplete,
            work(0, 2, true),
            ("fail", 2, "no active agent and 2 unfinished dispatches in the run"),
        ),
        (GateCheck::DispatchesComplete, Facts::Dispatches(vec![]), ("pass", 0, "no unfinished dispatch in the run")),
        (
            GateCheck::DispatchesComplete,
            Facts::Dispatches(vec![unfinished("dispatch"); 3]),
            ("fail", 3, "3 unfinished dispatches in the run"),
        ),
        (
            GateCheck::VerdictClean,
            Facts::Verdicts { pass: 3, fail: 2 },
            ("fail", 5, "3 passing verdicts and 2 failing ones in the run"),
        ),
        (GateCheck::VerdictExists, Facts::NewestVerdict(None), ("fail", 0, "no verdict in the run")),
        (
            GateCheck::VerdictExists,
            newest(false),
            ("fail", 0, "the newest verdict in the run, of dispatch 0a000001, is fail"),
        ),
        (
            GateCheck::VerdictExists,
            newest(true),
            ("pass", 1, "the newest verdict in the run, of dispatch 0a000001, is pass"),
        ),
    ] {
        let (result, count, detail) = says;
        assert_eq!(weighed(check, facts), (result, count, detail.to_owned()), "{check:?}");
    }
    assert_eq!(evaluate(&[], Tier::Hard).result.as_str(), "none");
}

#[test]
fn a_priority_of_four_asks_nothing() {
    let hard = (requirement(GateCheck::ArtifactExists, Tier::Hard), artifacts(0));
    for (priority, result) in
        [(0, GateResult::Fail), (1, GateResult::Fail), (3, GateResult::Fail), (4, GateResult::None)]
    {
        let verdict = evaluate(std::slice::from_ref(&hard), Tier::of_priority(priority));
        assert_eq!(verdict.result, result, "{priority}");
        assert_eq!(verdict.blocks(), priority < 2, "{priority}");
    }
    assert_eq!(evaluate(&[], Tier::Hard).result, GateResult::None);
}

#[test]
fn a_clean_verdict_needs_one_pass_and_no_fail() {
    let holds = |pass, fail| {
        evaluate(&[(requirement(GateCheck::VerdictClean, Tier::Hard), Facts::Verdicts { pass, fail })], Tier::Hard)
            .result
            == GateResult::Pass
    };
    assert!(holds(1, 0));
    assert!(!holds(0, 0));
    assert!(!holds(1, 1));
}

#[test]
fn an_artifact_whose_file_does_not_exist_is_named_and_not_counted() {
    for (present, missing, says) in [
        (0, &["plan.md"][..], "no artifact in the run; 1 registered file does not exist: plan.md"),
        (1, &["a", "b", "c", "d"], "1 artifact in the run; 4 registered files do not exist: a, b, c, ..."),
    ] {
        let asked = (requirement(GateCheck::ArtifactExists, Tier::Hard), absent(present, missing));
        let condition = evaluate(&[asked], Tier::Hard).conditions.into_iter().next().unwrap();
        assert_eq!((condition.holds, condition.count, condition.detail.as_str()), (present > 0, present, says));
    }
}
