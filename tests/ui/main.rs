//! The page of `ic ui`, asked over HTTP as a browser asks it; what it says is compared with the tree, the branch, the rows and the process.

mod attacks;
mod large;
mod live;
mod on_server;
mod pages;
mod served;
mod undo;
