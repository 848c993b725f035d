//! The tokens that the work of a run used.

use ic_base::{Result, RunId};
use ic_ledger::Snapshot;

use crate::dispatch::TokenCounts;

/// What was used in one phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spent {
    /// The phase that the work was handed out in.
    pub phase: String,
    /// By all of it: what was rolled back was paid for, too.
    pub all: TokenCounts,
    /// The part of it that work used which was rolled back.
    pub rolled_back: TokenCounts,
}

/// Halves of a count. A report may say anything that an integer holds, and the database refuses a sum that does not fit into one: sums of
/// halves always do.
const HALF: i64 = 1 << 32;

/// What the dispatches of a run used, phase by phase, in no order; phases without a dispatch are left out.
pub fn of_run(snapshot: &Snapshot<'_>, run: &RunId) -> Result<Vec<Spent>> {
    // The cast is for PostgreSQL, where the sum of a BIGINT is a NUMERIC, which cannot be read as an integer.
    let sums: Vec<String> = ["tokens_in", "tokens_out", "tokens_cache"]
        .iter()
        .map(|column| format!("CAST(SUM({column} / {HALF}) AS BIGINT), CAST(SUM({column} % {HALF}) AS BIGINT)"))
        .collect();
    // One search of the index of the run; nothing is asked twice for the part that was rolled back.
    let sql = format!(
        "SELECT phase, CASE WHEN rolled_back_by IS NULL THEN 0 ELSE 1 END AS gone, {} FROM dispatches \
         WHERE run_id = $1 GROUP BY phase, gone",
        sums.join(", ")
    );
    let rows = snapshot.query_all(&sql, &[&run.as_str()], |row| {
        let sum = |at: usize| Ok(joined(row.get(at)?, row.get(at + 1)?));
        let gone: i64 = row.get(1)?;
        let tokens = TokenCounts { input: sum(2)?, output: sum(4)?, cache: sum(6)? };
        Ok((row.get::<String>(0)?, gone == 1, tokens))
    })?;
    let mut spent: Vec<Spent> = Vec::new();
    for (phase, is_gone, tokens) in rows {
        let at = spent.iter().position(|known| known.phase == phase).unwrap_or_else(|| {
            spent.push(Spent { phase, all: TokenCounts::default(), rolled_back: TokenCounts::default() });
            spent.len() - 1
        });
        spent[at].all = spent[at].all.plus(tokens);
        if is_gone {
            spent[at].rolled_back = tokens;
        }
    }
    Ok(spent)
}

/// What was used in all phases: by all of it, and by the part that was rolled back.
pub fn total(spent: &[Spent]) -> (TokenCounts, TokenCounts) {
    spent.iter().fold((TokenCounts::default(), TokenCounts::default()), |(all, rolled_back), phase| {
        (all.plus(phase.all), rolled_back.plus(phase.rolled_back))
    })
}

fn joined(high: i64, low: i64) -> i64 {
    high.saturating_mul(HALF).saturating_add(low)
}
