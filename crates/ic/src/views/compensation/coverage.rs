//! How much of a run can be undone.

use anstyle::Style;
use ic_base::RunId;
use ic_saga::coverage::{CompensationReport, Coverage};

use crate::text::{Cell, Table, counted, style, styled};
use crate::views::shared::WarningJson;

shape! {
    /// How much of a run can be undone.
    pub(crate) struct CoverageJson {
        run_id: String,
        steps: Vec<CoveredJson>,
        /// The declared steps among all, 0-100, rounded down; without steps 100.
        percentage: u8,
        /// The steps that do not say how they are undone.
        undeclared: Vec<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<WarningJson>,
    }

    /// What a step says about its undo.
    struct CoveredJson {
        step: String,
        /// compensated, skip, pivot or undeclared.
        #[cfg_attr(test, schemars(extend("enum" = crate::views::words::coverages())))]
        coverage: &'static str,
    }
}

impl CoverageJson {
    pub(crate) fn new(run_id: &RunId, report: &CompensationReport) -> Self {
        let warning = (!report.is_complete()).then(|| WarningJson {
            code: "undeclared_steps",
            message: format!(
                "No undo is declared for {} of {}: {}.",
                report.undeclared.len(),
                counted(report.total, "step"),
                report.undeclared.join(", ")
            ),
        });
        let covered = |(step, coverage): &(String, Coverage)| CoveredJson {
            step: step.clone(),
            coverage: coverage.as_str(),
        };
        Self {
            run_id: run_id.to_string(),
            steps: report.steps.iter().map(covered).collect(),
            percentage: report.percentage,
            undeclared: report.undeclared.clone(),
            warnings: warning.into_iter().collect(),
        }
    }

    /// The warning in it, for people.
    pub(crate) fn warning(&self) -> Option<&str> {
        self.warnings.first().map(|warning| warning.message.as_str())
    }
}

/// How much of a run can be undone, step by step.
pub(crate) fn coverage(run_id: &RunId, report: &CompensationReport) -> String {
    let run = styled(style::STRONG, run_id.short());
    let declared = report.total - report.undeclared.len();
    let all = counted(report.total, "step");
    let style = if report.is_complete() { style::GOOD } else { style::WARN };
    let percentage = styled(style, &format!("{}%", report.percentage));
    let mut out = format!("{percentage} of run {run} is covered: {declared} of {all}\n");
    let mut table = Table::headless();
    for (step, coverage) in &report.steps {
        table.row(vec![
            "".into(),
            Cell::new(coverage_style(*coverage), coverage.as_str()),
            step.as_str().into(),
        ]);
    }
    if report.total > 0 {
        out.push_str(&table.render(""));
    }
    out
}

fn coverage_style(coverage: Coverage) -> Style {
    match coverage {
        Coverage::Compensated => style::GOOD,
        Coverage::Skip => style::DIM,
        Coverage::Pivot => style::WARN,
        Coverage::Undeclared => style::BAD,
    }
}
