//! `ic dispatch tokens`

use ic_ops::dispatch;

use crate::commands::prelude::*;
use crate::views::dispatch::DispatchJson;

/// Record the tokens that a dispatch has used so far; a later report replaces an earlier one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ic dispatch tokens \"$d\" --in 12000 --out 3400 --cache 8000")]
pub(crate) struct DispatchTokensArgs {
    /// The dispatch: an id, or the end of one
    id: String,
    /// Tokens read, without the cache
    #[arg(long = "in", value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    input: i64,
    /// Tokens that the model wrote
    #[arg(long = "out", value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    output: i64,
    /// Tokens read from a cache
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..))]
    cache: i64,
}

impl DispatchTokensArgs {
    pub(crate) fn run(&self, session: &mut CliSession) -> Result<ExitStatus> {
        let tokens = ic_dispatch::dispatch::TokenCounts { input: self.input, output: self.output, cache: self.cache };
        let kernel = session.kernel()?;
        let dispatch = dispatch::record_tokens(&kernel, &self.id, tokens)?;
        session.output.record(&DispatchJson::from(&dispatch), || views::dispatch::one_line(&dispatch))
    }
}
