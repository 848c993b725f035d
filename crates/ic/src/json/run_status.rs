//! A run with what its work used.

use ic_dispatch::dispatch::Tokens;
use ic_dispatch::spent::{self, Spent};
use ic_phase::Run;
use serde::Serialize;

use super::RunJson;
use super::dispatch::TokensJson;

/// A run as it is now, with the tokens that its work used (`run status`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RunStatusJson {
    #[serde(flatten)]
    run: RunJson,
    tokens: RunTokensJson,
}

/// The tokens that the dispatches of a run used.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RunTokensJson {
    #[serde(flatten)]
    sum: SpentJson,
    /// Of each phase with a dispatch, in the order of the chain.
    by_phase: Vec<PhaseTokensJson>,
}

/// The tokens of one phase.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PhaseTokensJson {
    phase: String,
    #[serde(flatten)]
    sum: SpentJson,
}

/// What all dispatches used, those that were rolled back, too.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SpentJson {
    #[serde(flatten)]
    all: TokensJson,
    /// The part of it that dispatches used which were rolled back.
    rolled_back: TokensJson,
}

impl RunStatusJson {
    pub(crate) fn new(run: &Run, spent: &[Spent]) -> Self {
        let phases = spent.iter().map(|of| PhaseTokensJson {
            phase: of.phase.clone(),
            sum: SpentJson::of(of.all, of.rolled_back),
        });
        let (all, rolled_back) = spent::total(spent);
        let tokens = RunTokensJson { by_phase: phases.collect(), sum: SpentJson::of(all, rolled_back) };
        Self { run: run.into(), tokens }
    }
}

impl SpentJson {
    fn of(all: Tokens, rolled_back: Tokens) -> Self {
        Self { all: all.into(), rolled_back: rolled_back.into() }
    }
}
