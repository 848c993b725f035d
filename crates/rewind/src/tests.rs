//! The crate as its callers use it, on databases as applications make them.

mod boundary;
mod faults;
mod fixture;
mod inspection;
mod lineage;
mod marks;
mod property;
mod refuse;
mod scope;
mod seed;
mod undo;
mod unusual_schemas;
mod vectors;
