//! Points of the kinds that agents make: before a person's prompt, and before a command that destroys.

use ic_base::Code;
use ic_dispatch::dispatch::DispatchWork;
use ic_kernel::Kernel;
use ic_ops::{dispatch, run};
use ic_phase::Run;
use ic_phase::point::{NewPoint, PointKind, announce, insert};
use ic_testkit::{kernel, new_run};
use ic_undo::{RollbackRequest, RollbackSummary, RollbackTarget, rollback};

const PROMPT: &str = "0190aaaa-0000-7000-8000-000000000001";
const LATER: &str = "0190aaaa-0000-7000-8000-000000000002";
const GUARD: &str = "0190bbbb-0000-7000-8000-000000000003";

fn make(kernel: &Kernel, run: &Run, kind: PointKind, name: &str, title: &str) {
    let new = NewPoint { kind, name, attempt: 1, session: Some("session"), title: Some(title) };
    let made = kernel.write(|tx, now| {
        let seq = announce(tx, now, run, &new)?;
        insert(tx, now, run, &new, seq, None)
    });
    made.expect("a point");
}

fn work(kernel: &Kernel, run: &Run, name: &str) -> String {
    let work = DispatchWork { name: Some(name.to_owned()), ..DispatchWork::default() };
    dispatch::create(kernel, run.id.as_str(), None, &work, None).expect("a dispatch").0.id.to_string()
}

fn back(kernel: &Kernel, run: &Run, to: &str, dry_run: bool) -> ic_base::Result<RollbackSummary> {
    let request = RollbackRequest {
        run: run.id.as_str(),
        to: RollbackTarget::Point(to),
        reason: None,
        dry_run,
        expect_plan: None,
    };
    rollback(kernel, &request)
}

fn marked(rollback: &RollbackSummary) -> Vec<String> {
    rollback.plan.cancelled_dispatches.iter().map(|dispatch| dispatch.id.to_string()).collect()
}

#[test]
fn a_run_goes_back_to_before_a_prompt_and_a_command() {
    let kernel = kernel();
    let run = run::create(&kernel, &new_run("a,b,c"), None).expect("a run").run;
    let before = work(&kernel, &run, "before");
    make(&kernel, &run, PointKind::Prompt, PROMPT, "make it\u{202e} blue\nand round");
    let first = work(&kernel, &run, "first");
    make(&kernel, &run, PointKind::Guard, GUARD, "rm -rf build");
    let second = work(&kernel, &run, "second");
    make(&kernel, &run, PointKind::Prompt, LATER, "no, green");
    let third = work(&kernel, &run, "third");

    let listed = kernel.read(|snapshot| ic_undo::points::list(snapshot, &run, false, 10)).expect("a list");
    let told: Vec<_> = listed.iter().map(|one| (one.kind, one.reference.as_str(), one.title.as_str())).collect();
    assert_eq!(told[0], ("prompt", format!("prompt:{}", &LATER[28..]).as_str(), "no, green"));
    assert_eq!(told[1], ("guard", format!("guard:{GUARD}").as_str(), "rm -rf build"));
    assert_eq!((told[2].0, told[2].2.contains(['\n', '\u{202e}'])), ("prompt", false), "{told:?}");
    // What a person means who names none is the newest prompt; a command only by name.
    assert_eq!(kernel.read(|snapshot| ic_undo::points::last(snapshot, &run)).expect("a point").reference, told[0].1);

    let planned = |to: &str| marked(&back(&kernel, &run, to, true).expect(to));
    assert_eq!(planned("prompt:-1"), [third.as_str()]);
    assert_eq!(planned(&format!("prompt:{}", &LATER[28..])), [third.as_str()]);
    assert_eq!(planned(&format!("guard:{GUARD}")), [second.as_str(), &third]);
    assert_eq!(planned(&GUARD[28..]), [second.as_str(), &third]);
    assert_eq!(planned("prompt:-2"), [first.as_str(), &second, &third]);
    for unknown in ["prompt:-3", "prompt:99999999", "guard:99999999"] {
        let error = back(&kernel, &run, unknown, true).expect_err(unknown);
        assert_eq!(error.code(), Code::PointNotFound, "{unknown}");
    }

    let done = back(&kernel, &run, &format!("prompt:{PROMPT}"), false).expect("a rollback");
    assert_eq!(marked(&done), [first.as_str(), &second, &third]);
    let error = back(&kernel, &run, &format!("guard:{GUARD}"), true).expect_err("it lies after the cut");
    assert_eq!(error.code(), Code::PointTakenBack);
    let left = back(&kernel, &run, "created", true).expect("the first point");
    assert_eq!(marked(&left), [before]);
}
