//! The settings of coding agents in a project: they say how this machine is set up. In git, installed hooks have their file excluded; in a
//! folder without git nothing hides it, so what a person or the client writes there after the work would refuse every undo.

use ic_session::clients;

use super::request::Conflict;

/// The reason that the report names for a settings file that stays.
pub(super) const STAYS: &str = "settings of a client, which others changed: they stay";

/// Removes settings that are to stay from the conflicts of a restore, and returns those. What the work itself changed there
/// is no conflict.
pub(super) fn take_from(conflicts: &mut Vec<Conflict>, stay: bool) -> Vec<Conflict> {
    let is_one = |conflict: &Conflict| stay && clients::is_settings(&conflict.path.0);
    let (settings, rest) = std::mem::take(conflicts).into_iter().partition(is_one);
    *conflicts = rest;
    settings
}
