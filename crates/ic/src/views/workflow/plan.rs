//! The plans of workflows: the steps of a file, and a rollback.

use ic_effects::coverage::{CompensationReport, EffectCoverage};
use ic_undo::LayeredRollback;
use ic_workflow::definition::StepCommand;
use ic_workflow::graph::StepOrder;
use ic_workflow::{Definition, WorkflowPoint, WorkflowPreview, Would};

use crate::text::{Cell, TextTable, counted, plain, shell_word, style, styled};
use crate::views;
use crate::views::rollback::RollbackJson;
use crate::views::rollback::record::RollbackShowJson;

shape! {
    /// The plan of a workflow's rollback (`workflow rollback --dry-run`): the rollback of its run, and what concerns only the workflow.
    pub(crate) struct WorkflowRollbackPlanJson {
        workflow: String,
        /// full, partial, files-only or git-only; null if an unfinished rollback would be resumed.
        strategy: Option<&'static str>,
        /// The steps that resuming begins with afterwards; empty: the first one.
        before_steps: Vec<String>,
        /// The plan; its fields are left out if an unfinished rollback would be resumed, whose plan is fixed.
        #[serde(flatten)]
        plan: Option<RollbackJson>,
        /// The unfinished rollback that would be resumed.
        #[serde(skip_serializing_if = "Option::is_none")]
        resumes: Option<RollbackShowJson>,
    }

    /// The content of a workflow's file.
    pub(crate) struct WorkflowPlanJson from (definition: &Definition, coverage: &CompensationReport) where
        order = StepOrder::of(definition);
        undo = |at: usize| coverage.steps.get(at).map_or(EffectCoverage::Undeclared, |step| step.1);
        steps = order.order().iter().map(|at| PlannedStepJson::new(definition, *at, undo(*at)));
    {
        workflow: String = definition.name.clone(),
        goal: String = definition.goal.clone(),
        /// The chain of its runs.
        phases: Vec<String> = definition.phases.clone(),
        /// The steps in an order in which they could run one after the other.
        steps: Vec<PlannedStepJson> = steps.collect(),
        /// The share of steps that declare their undo, 0-100.
        percentage: u8 = coverage.percentage,
        /// The steps that do not.
        undeclared: Vec<String> = coverage.undeclared.clone(),
    }

    /// A step of the file.
    struct PlannedStepJson from (definition: &Definition, at: usize, coverage: EffectCoverage) where
        step = &definition.steps[at];
    {
        id: String = step.id.clone(),
        phase: String = step.phase.clone(),
        needs: Vec<String> = step.needs.iter().map(|need| definition.steps[*need].id.clone()).collect(),
        /// The program and its arguments, or a line for `sh`.
        argv: Vec<String> = match &step.run {
            StepCommand::Script { text, shell } => shell.argv(text),
            StepCommand::Argv(argv) => argv.clone(),
        },
        timeout_ms: Option<u64> = step.timeout.and_then(|timeout| u64::try_from(timeout.as_millis()).ok()),
        retries: u32 = step.retries.max,
        /// compensated, skip, pivot or undeclared.
        #[cfg_attr(test, schemars(extend("enum" = crate::views::tests::schema_words::coverages())))]
        coverage: &'static str = coverage.as_str(),
    }
}

impl From<&WorkflowPreview> for WorkflowRollbackPlanJson {
    fn from(preview: &WorkflowPreview) -> Self {
        let nothing = Self {
            workflow: preview.workflow.clone(),
            strategy: None,
            before_steps: vec![],
            plan: None,
            resumes: None,
        };
        match &preview.would {
            Would::Begin(plan) => Self {
                strategy: Some(plan.strategy.as_str()),
                before_steps: plan.before_steps.clone(),
                plan: Some(RollbackJson::from(&plan.whole)),
                ..nothing
            },
            Would::Resume(begun) => Self { resumes: Some(RollbackShowJson::new(&begun.0, &begun.1, false)), ..nothing },
        }
    }
}

/// The steps of a workflow, in order, and whether each can be undone.
pub(crate) fn plan(definition: &Definition, report: &CompensationReport) -> String {
    let mut text =
        format!("{}: {}\n\n", styled(style::STRONG, &plain(&definition.name)), plain(&definition.phases.join(" → ")));
    let mut table = TextTable::new(&["STEP", "PHASE", "NEEDS", "UNDO", "RUNS"]);
    for at in StepOrder::of(definition).order().iter().copied() {
        let step = &definition.steps[at];
        let needs: Vec<&str> = step.needs.iter().map(|need| definition.steps[*need].id.as_str()).collect();
        let run = match &step.run {
            // A row of the table has one line, and a script may have many.
            StepCommand::Script { text, .. } => text.lines().next().unwrap_or_default().to_owned(),
            StepCommand::Argv(argv) => argv.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "),
        };
        let undo = report.steps.get(at).map_or(EffectCoverage::Undeclared, |step| step.1);
        let undo_style = if undo == EffectCoverage::Undeclared { style::WARN } else { style::NONE };
        table.row(vec![
            Cell::new(style::STRONG, &step.id),
            step.phase.as_str().into(),
            needs.join(" ").into(),
            Cell::new(undo_style, undo.as_str()),
            Cell::new(style::DIM, &run),
        ]);
    }
    text += &table.render("No steps.");
    if !report.is_complete() {
        text += &format!("\n{}\n", plain(&undeclared(report)));
    }
    text
}

/// The plan of a workflow's rollback, as text.
pub(crate) fn rollback_plan(preview: &WorkflowPreview) -> String {
    would(preview, views::rollback::layers_plan::plan)
}

/// The same, with the refusal of the real call, or the command that does exactly this.
pub(crate) fn rollback_preview(preview: &WorkflowPreview) -> String {
    would(preview, |whole| views::rollback::layers_plan::layered(whole, None))
}

fn would(preview: &WorkflowPreview, plan_text: fn(&LayeredRollback) -> String) -> String {
    let name = styled(style::STRONG, &plain(&preview.workflow));
    let plan = match &preview.would {
        Would::Begin(plan) => plan,
        Would::Resume(begun) => {
            let (remembered, steps) = begun.as_ref();
            return format!(
                "{name}: this rollback would be resumed\n\n{}",
                views::rollback::record::show(remembered, steps, false, None, None)
            );
        }
    };
    let at = again_at(&plan.whole.rollback.plan.to_phase, &plan.before_steps);
    let mut out = format!("{name}: it would be at {}\n", plain(&at));
    if let Some(why) = plan.stays {
        out += &format!("{} {why}\n", styled(style::WARN, "note:"));
    }
    out + "\n" + &plan_text(&plan.whole)
}

/// The sentence about steps that do not declare their undo.
pub(crate) fn undeclared(report: &CompensationReport) -> String {
    format!(
        "{} of {} declare their undo ({}%); these do not: {}",
        report.total - report.undeclared.len(),
        counted(report.total, "step"),
        report.percentage,
        report.undeclared.join(", ")
    )
}

/// Where a workflow resumes: `built again, before the step test`.
pub(crate) fn again_at(phase: &str, before: &[String]) -> String {
    match before {
        [] => format!("{phase} again"),
        [step] => format!("{phase} again, before the step {step}"),
        steps => format!("{phase} again, before the steps {}", steps.join(" and ")),
    }
}

/// A numbered list of the points that a workflow can be rolled back to.
pub(crate) fn points(points: &[WorkflowPoint]) -> String {
    let mut table = TextTable::new(&["", "BEFORE", "PHASE", "CHECKPOINT", "TAKEN"]);
    for (at, point) in points.iter().enumerate() {
        let all = if point.is_first { " (all of it)" } else { "" };
        table.row(vec![
            format!("{}", at + 1).into(),
            Cell::new(style::STRONG, &format!("{}{all}", point.steps.join(" and "))),
            point.phase.as_str().into(),
            point.checkpoint.id.short().into(),
            Cell::new(style::DIM, &point.checkpoint.created_at.to_string()),
        ]);
    }
    table.render("No points.")
}
