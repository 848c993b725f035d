//! What the rules say, over plain lists. Time is a counter; nothing here knows events, SQL or the product's code.

/// Why the model expects a refusal: the error's code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) &'static str);

/// A dispatch, an artifact or an agent.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) status: &'static str,
    pub(super) marked: bool,
    phase: usize,
    time: u64,
    /// When it ended with a verdict, and whether that is pass.
    verdict: Option<(u64, bool)>,
    /// When it reported a commit last.
    recorded: Option<u64>,
}

/// What a rollback names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) phases: Vec<String>,
    pub(super) cancelled: Vec<String>,
    pub(super) marked: Vec<String>,
    pub(super) artifacts: Vec<String>,
    pub(super) failed_agents: Vec<String>,
    pub(super) marked_agents: Vec<String>,
    pub(super) skips: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Model {
    pub(super) at: usize,
    pub(super) epoch: i64,
    pub(super) completed: bool,
    pub(super) dispatches: Vec<Row>,
    pub(super) artifacts: Vec<Row>,
    pub(super) agents: Vec<Row>,
    now: u64,
    moves: Vec<(u64, usize, usize)>,
    skips: Vec<(u64, usize)>,
    commits: Vec<(u64, String)>,
}

const LAST: usize = 4;

impl Model {
    pub(super) fn new() -> Self {
        Self {
            at: 0,
            epoch: 0,
            completed: false,
            dispatches: vec![],
            artifacts: vec![],
            agents: vec![],
            now: 0,
            moves: vec![],
            skips: vec![],
            commits: vec![],
        }
    }

    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    fn active(&self) -> Result<(), Refusal> {
        if self.completed { Err(Refusal("run_not_active")) } else { Ok(()) }
    }

    /// Whether the run moved.
    pub(super) fn advance(&mut self, overridden: bool) -> Result<bool, Refusal> {
        if self.completed {
            return Err(Refusal("terminal_phase"));
        }
        // The gate of the phase that is left applies, whatever phases are skipped.
        let holds = match self.at {
            1 => self.artifacts.iter().any(|a| a.phase == 1 && !a.marked),
            3 => self.newest_verdict(3),
            _ => true,
        };
        if !holds && !overridden {
            return Ok(false);
        }
        let to =
            (self.at + 1..=LAST).find(|p| !self.skips.iter().any(|(_, s)| s == p)).expect("the last is never skipped");
        let time = self.tick();
        self.moves.push((time, self.at, to));
        self.at = to;
        self.completed = to == LAST;
        Ok(true)
    }

    /// Whether the newest verdict of a phase that stands is pass.
    fn newest_verdict(&self, phase: usize) -> bool {
        let of_phase = self.dispatches.iter().filter(|d| d.phase == phase && !d.marked);
        of_phase.filter_map(|d| d.verdict).max().is_some_and(|(_, passed)| passed)
    }

    /// Whether the skip is new.
    pub(super) fn skip(&mut self, phase: usize) -> Result<bool, Refusal> {
        self.active()?;
        if phase == LAST {
            return Err(Refusal("terminal_phase"));
        }
        if phase <= self.at {
            return Err(Refusal(if phase == self.at { "already_at_phase" } else { "phase_passed" }));
        }
        if self.skips.iter().any(|(_, p)| *p == phase) {
            return Ok(false);
        }
        let time = self.tick();
        self.skips.push((time, phase));
        Ok(true)
    }

    pub(super) fn standing_skips(&self) -> Vec<usize> {
        self.skips.iter().map(|(_, p)| *p).collect()
    }

    fn row(&mut self, id: Result<String, Refusal>, phase: Option<usize>, status: &'static str) -> Option<Row> {
        if let Err(refusal) = self.active() {
            assert_eq!(id, Err(refusal));
            return None;
        }
        let id = id.expect("the model sees no reason to refuse");
        Some(Row {
            id,
            status,
            marked: false,
            phase: phase.unwrap_or(self.at),
            time: self.tick(),
            verdict: None,
            recorded: None,
        })
    }

    pub(super) fn dispatch(&mut self, id: Result<String, Refusal>, phase: Option<usize>) {
        let row = self.row(id, phase, "pending");
        self.dispatches.extend(row);
    }

    pub(super) fn artifact(&mut self, id: Result<String, Refusal>, phase: Option<usize>) {
        let row = self.row(id, phase, "active");
        self.artifacts.extend(row);
    }

    pub(super) fn agent(&mut self, id: Result<String, Refusal>) {
        let row = self.row(id, None, "active");
        self.agents.extend(row);
    }

    pub(super) fn start(&mut self, i: usize) -> Result<(), Refusal> {
        let time = self.tick();
        let row = &mut self.dispatches[i];
        match (row.marked, row.status) {
            (true, _) => Err(Refusal("stale_dispatch")),
            (_, "pending") => {
                row.status = "running";
                // It belongs to where it was begun.
                row.time = time;
                Ok(())
            }
            (_, "running") => Err(Refusal("dispatch_running")),
            _ => Err(Refusal("dispatch_finished")),
        }
    }

    pub(super) fn end(&mut self, i: usize, verdict: Option<bool>) -> Result<(), Refusal> {
        let time = self.tick();
        let row = &mut self.dispatches[i];
        match (row.marked, row.status) {
            (true, _) => Err(Refusal("stale_dispatch")),
            (_, "pending" | "running") => {
                row.status = "completed";
                row.verdict = verdict.map(|passed| (time, passed));
                Ok(())
            }
            _ => Err(Refusal("dispatch_finished")),
        }
    }

    pub(super) fn end_agent(&mut self, i: usize) -> Result<(), Refusal> {
        let row = &mut self.agents[i];
        match (row.marked, row.status) {
            (true, _) => Err(Refusal("stale_dispatch")),
            (_, "active") => {
                row.status = "completed";
                Ok(())
            }
            _ => Err(Refusal("agent_finished")),
        }
    }

    /// Whether the report is late.
    pub(super) fn record(&mut self, i: usize, sha: String) -> bool {
        let time = self.tick();
        self.commits.push((time, sha));
        self.dispatches[i].recorded = Some(time);
        self.dispatches[i].marked
    }

    /// The moment a rollback to `to` goes back to; 0 is the run's creation.
    fn cut(&self, to: usize, include: bool) -> u64 {
        self.crossing(to, include).unwrap_or(0)
    }

    fn crossing(&self, to: usize, include: bool) -> Option<u64> {
        let crossed = |(time, from, reached): &(u64, usize, usize)| {
            let crossed = if include { *from < to && to <= *reached } else { *from <= to && to < *reached };
            crossed.then_some(*time)
        };
        self.moves.iter().filter_map(crossed).max()
    }

    /// The commits after the cut, newest first; none if the run never crossed it.
    pub(super) fn commits_after(&self, to: usize, include: bool) -> Vec<String> {
        let cut = match self.crossing(to, include) {
            None if include && to == 0 => 0,
            None => return vec![],
            Some(time) => time,
        };
        self.commits.iter().rev().filter(|(time, _)| *time > cut).map(|(_, sha)| sha.clone()).collect()
    }

    pub(super) fn plan(&self, to: usize, include: bool) -> Result<Plan, Refusal> {
        if to > self.at {
            return Err(Refusal("phase_ahead"));
        }
        if to == self.at && !include {
            return Err(Refusal("already_at_phase"));
        }
        if to == LAST {
            return Err(Refusal("terminal_phase"));
        }
        let first = if include { to } else { to + 1 };
        let taken = |rows: &[Row], statuses: &[&str]| -> Vec<String> {
            rows.iter()
                .filter(|r| self.takes(r, to, include) && statuses.contains(&r.status))
                .map(|r| r.id.clone())
                .collect()
        };
        let cut = self.cut(to, include);
        Ok(Plan {
            phases: (first..=self.at).map(|p| super::PHASES[p].to_owned()).collect(),
            cancelled: taken(&self.dispatches, &["pending", "running"]),
            marked: taken(&self.dispatches, &["completed"]),
            artifacts: taken(&self.artifacts, &["active"]),
            failed_agents: taken(&self.agents, &["active"]),
            marked_agents: taken(&self.agents, &["completed"]),
            skips: self
                .skips
                .iter()
                .filter(|(time, phase)| *time > cut || *phase == to)
                .map(|(_, phase)| super::PHASES[*phase].to_owned())
                .collect(),
        })
    }

    fn takes(&self, row: &Row, to: usize, include: bool) -> bool {
        let labelled = row.phase <= self.at && (row.phase > to || (include && row.phase == to));
        let cut = self.cut(to, include);
        // Its commits are among those that are to be reverted.
        let is_reverted = row.recorded.is_some_and(|time| time > cut);
        !row.marked && (row.time > cut || labelled || is_reverted)
    }

    pub(super) fn apply(&mut self, to: usize, include: bool) {
        let cut = self.cut(to, include);
        let taken = |rows: &[Row], model: &Self| rows.iter().map(|r| model.takes(r, to, include)).collect::<Vec<_>>();
        let marks = [taken(&self.dispatches, self), taken(&self.artifacts, self), taken(&self.agents, self)];
        let kinds =
            [(&mut self.dispatches, "cancelled"), (&mut self.artifacts, "rolled_back"), (&mut self.agents, "failed")];
        for ((rows, ended), marks) in kinds.into_iter().zip(marks) {
            for (row, mark) in rows.iter_mut().zip(marks) {
                row.marked |= mark;
                if mark && matches!(row.status, "pending" | "running" | "active") {
                    row.status = ended;
                }
            }
        }
        self.skips.retain(|(time, phase)| *time <= cut && *phase != to);
        self.at = to;
        self.epoch += 1;
        self.completed = false;
    }
}
