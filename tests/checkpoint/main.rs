//! Campaigns against checkpoints: what is restored is exact, nothing outside of the root is written, nothing is deleted
//! without evidence, and whatever kills, fills, crowds or damages them, a checkpoint that is listed can be restored.

mod attributes;
mod beside;
mod clean;
mod crowd;
mod damage;
mod database;
mod disk;
mod dying;
mod evidence;
mod exact;
mod extremes;
mod failures;
mod forest;
mod full;
mod ignored;
mod kill;
mod ledgers;
mod left_locks;
mod leftovers;
mod links;
mod locks;
mod logs;
mod lost;
mod mapped;
mod outside;
mod past;
mod promised;
mod refs;
mod retention;
mod said;
mod snapshot;
mod times;
mod within;
mod workers;
mod world;
