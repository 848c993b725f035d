//! Trees that would lead a restore elsewhere, and trees that change under it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use super::*;

/// Every operation below a directory that is a link fails and changes nothing.
fn assert_refused(place: &Place, below: &str) {
    let path = |name: &str| format!("{below}/{name}").into_bytes();
    assert!(place.write(path("new"), b"x").is_err());
    assert!(place.write(path("kept"), b"x").is_err());
    assert!(place.root.make_symlink(&path("new"), b"t", TEMPORARY, &|_| true).is_err());
    assert!(place.root.make_directory(&path("new")).is_err());
    assert!(place.root.set_mode(&path("kept"), 0o777, &|_| true).is_err());
    assert!(place.root.remove_file(&path("kept"), &|_| true).is_err());
    assert!(place.root.remove_directory(&path("kept")).is_err());
    assert!(place.root.open_file(&path("kept")).is_err());
    assert!(place.root.remove_temporary(below.as_bytes(), b"kept").is_err());
    assert_eq!(place.root.state(&path("kept")).unwrap(), EntryState::Absent);
}

#[test]
fn no_link_leads_anywhere() {
    let place = Place::new();
    fs::write(place.outside.join("kept"), "theirs").unwrap();
    fs::create_dir_all(place.at("inside/deep")).unwrap();
    fs::write(place.at("inside/kept"), "ours").unwrap();
    symlink(&place.outside, place.at("absolute")).unwrap();
    symlink("../outside", place.at("relative")).unwrap();
    symlink("inside", place.at("within")).unwrap();
    symlink("../..", place.at("inside/deep/up")).unwrap();
    symlink("loop", place.at("loop")).unwrap();
    for below in ["absolute", "relative", "within", "within/deep", "inside/deep/up/outside", "loop"] {
        assert_refused(&place, below);
    }
    assert_eq!(names(&place.outside), [b"kept"]);
    assert_eq!(fs::read(place.outside.join("kept")).unwrap(), b"theirs");
    assert_eq!(mode(&place.outside.join("kept")), 0o644);
    assert_eq!(fs::read(place.at("inside/kept")).unwrap(), b"ours");
}

#[test]
fn the_root_may_be_named_through_a_link_and_may_move() {
    let place = Place::new();
    let link = place.outside.join("link");
    symlink(&place.tree, &link).unwrap();
    let root = RootDir::open(&link).unwrap();
    fs::remove_file(&link).unwrap();
    let moved = place.tree.with_file_name("moved");
    fs::rename(&place.tree, &moved).unwrap();
    root.write_file(b"f", 0o644, TEMPORARY, &|_| true, &mut |file| put(file, b"x")).unwrap();
    assert!(moved.join("f").exists());
    assert!(RootDir::open(&moved.join("f")).is_err());
    assert!(RootDir::open(&moved.join("none")).is_err());
}

#[test]
fn a_directory_that_is_swapped_for_a_link_never_leads_outside() {
    let place = Place::new();
    fs::create_dir_all(place.at("d/e")).unwrap();
    symlink(&place.outside, place.at("link")).unwrap();
    fs::create_dir(place.outside.join("e")).unwrap();
    let stop = AtomicBool::new(false);
    let (mut done, mut refused) = (0_u64, 0_u64);
    thread::scope(|scope| {
        scope.spawn(|| {
            let (directory, link) = (place.at("d"), place.at("link"));
            while !stop.load(Relaxed) {
                renameat_with(CWD, &directory, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let deadline = Instant::now() + Duration::from_secs(30);
        // At least so often, and until the link was both met and missed.
        for turn in 0_u64.. {
            if (turn >= 2000 && done > 0 && refused > 0) || Instant::now() > deadline {
                break;
            }
            let path = format!("d/e/f{}", turn % 50).into_bytes();
            let result = match turn % 4 {
                0 | 1 => place.write(&path, b"content"),
                2 => place.root.make_symlink(&path, b"t", TEMPORARY, &|_| true),
                _ => place.root.remove_file(&path, &|_| true),
            };
            *if result.is_ok() { &mut done } else { &mut refused } += 1;
        }
        stop.store(true, Relaxed);
    });
    assert_eq!(names(&place.outside), [b"e"]);
    assert!(names(&place.outside.join("e")).is_empty(), "{done} done, {refused} refused");
    assert!(done > 0 && refused > 0, "{done} done, {refused} refused");
    // The link may stand in the directory's place now.
    let directory = ["d", "link"].map(|name| place.at(name)).into_iter().find(|path| !path.is_symlink()).unwrap();
    assert!(!names(&directory.join("e")).contains(&TEMPORARY.to_vec()));
}

#[test]
fn a_directory_that_is_moved_away_while_its_file_is_written_stays_as_it_is() {
    for to_link in [false, true] {
        let place = Place::new();
        fs::create_dir(place.at("d")).unwrap();
        fs::write(place.at("d/file"), "theirs").unwrap();
        let moved = place.outside.join("moved");
        let result = place.root.write_file(b"d/file", 0o644, TEMPORARY, &|_| true, &mut |file| {
            fs::rename(place.at("d"), &moved).unwrap();
            if to_link {
                symlink(&moved, place.at("d")).unwrap();
            }
            put(file, b"ours")
        });
        assert_eq!(result.unwrap_err().code(), Code::FileConflict);
        assert_eq!(names(&moved), [b"file"]);
        assert_eq!(fs::read(moved.join("file")).unwrap(), b"theirs");
    }
}

#[test]
fn paths_longer_than_the_kernel_takes_are_written() {
    let place = Place::new();
    let name = [b'n'; 40];
    let mut path = Vec::new();
    for _ in 0..300 {
        path.extend_from_slice(&name);
        place.root.make_directory(&path).unwrap();
        path.push(b'/');
    }
    assert!(path.len() > 3 * 4096);
    path.extend_from_slice(b"file");
    place.write(&path, b"deep").unwrap();
    assert!(matches!(place.root.state(&path).unwrap(), EntryState::File(_)));
    let mut content = String::new();
    place.root.open_file(&path).unwrap().read_to_string(&mut content).unwrap();
    assert_eq!(content, "deep");
    place.root.set_mode(&path, 0o600, &|_| true).unwrap();
    place.root.remove_file(&path, &|_| true).unwrap();
    while let Some(at) = path.iter().rposition(|b| *b == b'/') {
        path.truncate(at);
        place.root.remove_directory(&path).unwrap();
    }
    assert!(names(&place.tree).is_empty());
}
