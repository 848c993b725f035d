//! The share of a run that can be undone.

use anstyle::Style;
use ic_base::RunId;
use ic_effects::coverage::{CompensationReport, EffectCoverage};
use ic_worktree::Warning;

use crate::text::{Cell, TextTable, counted, style, styled};
use crate::views::common_shapes::WarningJson;

shape! {
    /// The steps of a run with and without a declared undo (`compensation coverage`).
    pub(crate) struct CoverageJson from (run_id: &RunId, report: &CompensationReport) {
        run_id: String = run_id.to_string(),
        steps: Vec<CoveredJson> = report.steps.iter().map(CoveredJson::from).collect(),
        /// The share of steps that declare their undo, 0-100, rounded down; 100 if there are no steps.
        percentage: u8 = report.percentage,
        /// The steps without a declared undo.
        undeclared: Vec<String> = report.undeclared.clone(),
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<WarningJson> = undeclared(report).iter().map(WarningJson::from).collect(),
    }

    /// A step, and what it declares about its undo.
    struct CoveredJson from (step, coverage): &(String, EffectCoverage) {
        step: String = step.clone(),
        /// compensated, skip, pivot or undeclared.
        #[cfg_attr(test, schemars(extend("enum" = crate::views::tests::schema_words::coverages())))]
        coverage: &'static str = coverage.as_str(),
    }
}

/// The warning about steps that do not declare their undo; `None` if all do.
pub(crate) fn undeclared(report: &CompensationReport) -> Option<Warning> {
    let (undeclared, all) = (&report.undeclared, counted(report.total, "step"));
    let message = format!("No undo is declared for {} of {all}: {}.", undeclared.len(), undeclared.join(", "));
    (!report.is_complete()).then_some(Warning { code: "undeclared_steps", message })
}

/// The steps of a run, one a line, and the share that can be undone.
pub(crate) fn coverage(run_id: &RunId, report: &CompensationReport) -> String {
    let run = styled(style::STRONG, run_id.short());
    let declared = report.total - report.undeclared.len();
    let all = counted(report.total, "step");
    let style = if report.is_complete() { style::GOOD } else { style::WARN };
    let percentage = styled(style, &format!("{}%", report.percentage));
    let mut out = format!("{percentage} of run {run} is covered: {declared} of {all}\n");
    let mut table = TextTable::headless();
    for (step, coverage) in &report.steps {
        table.row(vec!["".into(), Cell::new(coverage_style(*coverage), coverage.as_str()), step.as_str().into()]);
    }
    if report.total > 0 {
        out += &table.render("");
    }
    out
}

fn coverage_style(coverage: EffectCoverage) -> Style {
    match coverage {
        EffectCoverage::Compensated => style::GOOD,
        EffectCoverage::Skip => style::DIM,
        EffectCoverage::Pivot => style::WARN,
        EffectCoverage::Undeclared => style::BAD,
    }
}
