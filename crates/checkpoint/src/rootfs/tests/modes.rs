//! Permission bits: kept exactly, and no obstacle where the directory is ours.

use super::*;

#[test]
fn every_bit_is_kept_whatever_the_umask() {
    let place = Place::new();
    for bits in [0o000, 0o400, 0o644, 0o666, 0o777, 0o1644, 0o2755, 0o4755, 0o6755, 0o7777] {
        place.write_mode("file", bits, b"content").unwrap();
        assert_eq!(mode(&place.at("file")), bits, "{bits:o}");
        fs::write(place.at("other"), "").unwrap();
        place.root.set_mode(b"other", bits, &|_| true).unwrap();
        assert_eq!(mode(&place.at("other")), bits, "{bits:o}");
        place.root.remove_file(b"other", &|_| true).unwrap();
    }
    fs::create_dir(place.at("d")).unwrap();
    for bits in [0o1777, 0o2755, 0o555, 0o000] {
        place.root.set_mode(b"d", bits, &|_| true).unwrap();
        assert_eq!(mode(&place.at("d")), bits, "{bits:o}");
    }
    place.root.set_mode(b"d", 0o700, &|_| true).unwrap();
}

#[test]
fn content_is_private_until_it_is_in_place() {
    let place = Place::new();
    let temporary = place.at(TEMPORARY);
    let look = |file: &mut fs::File| {
        put(file, b"secret")?;
        assert_eq!(mode(&temporary), 0o600);
        Ok(())
    };
    let still = |_: &EntryState| mode(&temporary) == 0o644;
    place.root.write_file(b"file", 0o644, TEMPORARY, &still, &mut { look }).unwrap();
}

/// Who owns a file that may not be written into cannot set its attributes, and can when its mode goes back first.
#[test]
fn a_closed_file_gets_its_attributes_with_its_mode() {
    let place = Place::new();
    place.write_mode("file", 0o644, b"content").unwrap();
    let before = place.root.attributes(b"file").unwrap();
    let file = fs::File::open(place.at("file")).unwrap();
    if rustix::fs::fsetxattr(&file, "user.test", b"1", rustix::fs::XattrFlags::empty()).is_err() {
        return println!("skipped: no attributes can be set here");
    }
    place.root.set_mode(b"file", 0o444, &|_| true).unwrap();
    assert_ne!(place.root.attributes(b"file").unwrap(), before);
    let looks = crate::rootfs::FileAttributes { mode: 0o644, attributes: Some(&before) };
    place.root.set_mode(b"file", looks, &|_| true).unwrap();
    assert_eq!(place.root.attributes(b"file").unwrap(), before);
    assert_eq!(mode(&place.at("file")), 0o644);
}

#[test]
fn a_closed_file_is_opened_up_and_replaced() {
    let place = Place::new();
    for bits in [0o000, 0o444] {
        fs::write(place.at("file"), "old").unwrap();
        chmod(&place.at("file"), bits);
        place.root.set_mode(b"file", 0o200, &|_| true).unwrap();
        chmod(&place.at("file"), bits);
        place.write("file", b"new").unwrap();
        assert_eq!(fs::read(place.at("file")).unwrap(), b"new");
    }
}

/// Everything that can be done inside a directory.
fn work_inside(place: &Place, directory: &str) {
    let path = |name: &str| format!("{directory}/{name}").into_bytes();
    place.write(path("file"), b"new").unwrap();
    place.root.make_symlink(&path("link"), b"t", TEMPORARY, &|_| true).unwrap();
    place.root.make_directory(&path("sub")).unwrap();
    place.root.set_mode(&path("file"), 0o600, &|_| true).unwrap();
    place.root.remove_file(&path("file"), &|_| true).unwrap();
    place.root.remove_file(&path("link"), &|_| true).unwrap();
    place.root.remove_directory(&path("sub")).unwrap();
}

#[test]
fn a_closed_directory_of_ours_is_written_into_and_closed_again() {
    for bits in [0o555, 0o500, 0o2555, 0o1111, 0o100, 0o400, 0o000] {
        let place = Place::new();
        fs::create_dir(place.at("d")).unwrap();
        fs::create_dir(place.at("d/full")).unwrap();
        chmod(&place.at("d"), bits);
        work_inside(&place, "d");
        assert_eq!(mode(&place.at("d")), bits, "{bits:o}");

        // And when it goes wrong.
        assert!(place.write("d/full", b"over a directory").is_err());
        assert_eq!(mode(&place.at("d")), bits, "{bits:o}");
        let error = place.root.write_file(b"d/file", 0o644, TEMPORARY, &|_| false, &mut |_| Ok(()));
        assert_eq!(error.unwrap_err().code(), Code::FileConflict);
        assert_eq!(mode(&place.at("d")), bits, "{bits:o}");
        chmod(&place.at("d"), 0o700);
        assert_eq!(names(&place.at("d")), [b"full"]);
    }
}

#[test]
fn a_closed_root_is_written_into_and_closed_again() {
    let place = Place::new();
    chmod(&place.tree, 0o555);
    place.write("file", b"new").unwrap();
    assert_eq!(mode(&place.tree), 0o555);
    place.root.set_mode(b"", 0o750, &|_| true).unwrap();
    assert_eq!(mode(&place.tree), 0o750);
}

#[test]
fn a_root_that_nobody_may_enter_gets_its_attributes() {
    let place = Place::new();
    chmod(&place.tree, 0o000);
    // Nothing below the root can be named now, not even `.`, unless root asks: only the handle that was opened before leads to it.
    let attributes = place.root.attributes(b"").unwrap();
    place
        .root
        .set_mode(b"", crate::rootfs::FileAttributes { mode: 0o700, attributes: Some(&attributes) }, &|_| true)
        .unwrap();
    assert_eq!(mode(&place.tree), 0o700);
}

#[test]
fn what_a_killed_restore_left_in_a_closed_directory_is_removed() {
    let place = Place::new();
    fs::create_dir(place.at("d")).unwrap();
    fs::write(place.at("d/.ic-a-1"), "").unwrap();
    for bits in [0o555, 0o311] {
        fs::write(place.at("d/.ic-a-1"), "").unwrap();
        chmod(&place.at("d"), bits);
        assert_eq!(place.root.remove_temporary(b"d", b".ic-a-").unwrap(), 1, "{bits:o}");
        assert_eq!(mode(&place.at("d")), bits);
        chmod(&place.at("d"), 0o755);
    }
}

#[test]
fn the_mode_is_put_back_when_the_content_panics() {
    let place = Place::new();
    fs::create_dir(place.at("d")).unwrap();
    chmod(&place.at("d"), 0o555);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = place.root.write_file(b"d/f", 0o644, TEMPORARY, &|_| true, &mut |_| panic!("a broken reader"));
    }));
    assert!(panicked.is_err());
    assert_eq!(mode(&place.at("d")), 0o555);
    chmod(&place.at("d"), 0o755);
    assert!(names(&place.at("d")).is_empty());
}

#[test]
fn what_may_not_be_looked_at_is_an_error() {
    let place = Place::new();
    fs::create_dir(place.at("d")).unwrap();
    fs::write(place.at("d/file"), "").unwrap();
    chmod(&place.at("d"), 0o000);
    let found = place.root.state(b"d/file");
    chmod(&place.at("d"), 0o700);
    if is_root() {
        return;
    }
    assert_eq!(found.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
}
