//! How much of an execution can be undone, said before it has to be. Pure.

use serde::{Deserialize, Serialize};

ic_base::words! {
    /// What is known of a step's undo.
    ///
    /// They are ordered: a step with several compensations counts as the greatest of theirs.
    #[derive(PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum EffectCoverage {
        /// Nothing is said about it.
        Undeclared = "undeclared",
        /// Nothing is run for it, and that is declared.
        Skip = "skip",
        /// Something is run that undoes it.
        Compensated = "compensated",
        /// It cannot be undone, and that is declared.
        Pivot = "pivot",
    }
}

/// How many of the steps have declared what their undo is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompensationReport {
    /// The number of steps.
    pub total: usize,
    /// Every step with its coverage, in the order given.
    pub steps: Vec<(String, EffectCoverage)>,
    /// The declared steps among all, 0-100, rounded down: it is 100 only if none is undeclared. No steps are 100.
    pub percentage: u8,
    /// The steps of which nothing is known, in the order given.
    pub undeclared: Vec<String>,
}

impl CompensationReport {
    /// The report on these steps.
    ///
    /// ```
    /// use ic_effects::coverage::{CompensationReport, EffectCoverage};
    ///
    /// let steps = [("build", EffectCoverage::Skip), ("deploy", EffectCoverage::Compensated), ("announce", EffectCoverage::Undeclared)];
    /// let report = CompensationReport::new(steps.map(|(step, coverage)| (step.to_owned(), coverage)));
    /// assert_eq!(report.percentage, 66);
    /// assert_eq!(report.undeclared, ["announce"]);
    /// assert!(!report.is_complete());
    /// ```
    pub fn new(steps: impl IntoIterator<Item = (String, EffectCoverage)>) -> Self {
        let steps: Vec<(String, EffectCoverage)> = steps.into_iter().collect();
        let undeclared: Vec<String> =
            steps.iter().filter(|(_, c)| *c == EffectCoverage::Undeclared).map(|(step, _)| step.clone()).collect();
        let total = steps.len();
        let declared = total - undeclared.len();
        let percentage = (declared * 100).checked_div(total).and_then(|p| u8::try_from(p).ok()).unwrap_or(100);
        Self { total, steps, percentage, undeclared }
    }

    /// Whether every step has declared what its undo is.
    pub fn is_complete(&self) -> bool {
        self.undeclared.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{CompensationReport, EffectCoverage};

    fn report(steps: &[EffectCoverage]) -> CompensationReport {
        CompensationReport::new(steps.iter().enumerate().map(|(at, c)| (format!("s{at}"), *c)))
    }

    #[test]
    fn no_steps_are_covered() {
        let report = report(&[]);
        assert_eq!((report.total, report.percentage, report.is_complete()), (0, 100, true));
    }

    #[test]
    fn only_an_undeclared_step_is_missing() {
        let report = report(&[
            EffectCoverage::Pivot,
            EffectCoverage::Skip,
            EffectCoverage::Compensated,
            EffectCoverage::Undeclared,
        ]);
        assert_eq!((report.total, report.percentage), (4, 75));
        assert_eq!(report.undeclared, ["s3"]);
        assert_eq!(report.steps[0], ("s0".to_owned(), EffectCoverage::Pivot));
    }

    #[test]
    fn one_missing_among_many_is_not_all() {
        let mut steps = vec![EffectCoverage::Compensated; 999];
        steps.push(EffectCoverage::Undeclared);
        assert_eq!(report(&steps).percentage, 99);
    }

    #[test]
    fn several_compensations_of_a_step_count_as_the_greatest() {
        let kinds = [EffectCoverage::Skip, EffectCoverage::Compensated];
        assert_eq!(kinds.into_iter().max(), Some(EffectCoverage::Compensated));
    }

    #[test]
    fn the_names_are_those_of_the_command_line() {
        let all =
            [EffectCoverage::Undeclared, EffectCoverage::Skip, EffectCoverage::Compensated, EffectCoverage::Pivot];
        let names = serde_json::to_string(&all).unwrap();
        assert_eq!(names, r#"["undeclared","skip","compensated","pivot"]"#);
    }
}
