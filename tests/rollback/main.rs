//! Campaigns against rollbacks over several layers: the preview is the plan, whatever kills them they end as if undisturbed, what
//! is undone and done again is the same, and nobody beside them loses anything.

mod again;
mod any_point;
mod around;
mod attempts;
mod beside;
mod closed;
mod crowd;
mod data;
mod decided;
mod exactly;
mod failures;
mod given_up;
mod glance;
mod guarantees;
mod histories;
mod interrupted;
mod kept;
mod kill;
mod log;
mod neighbours;
mod points;
mod preflight;
mod previews;
mod processes;
mod record;
mod redacted;
mod rows;
mod said;
mod statements;
mod story;
mod told;
mod undone;
mod without;
mod workflows;
mod world;
