//! The page of `ic ui`, over HTTP as a browser uses it; its content is compared with the tree, the branch, the rows and the process.

mod attacks;
mod large;
mod live;
mod on_server;
mod pages;
mod place;
mod served;
mod undo;
