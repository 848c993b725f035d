//! Texts that are long, or made to take long.

use std::time::{Duration, Instant};

use super::super::{MOST_LINES, stat};
use super::{PROGRAMS, Program, apply, patch};

#[test]
fn a_long_text_with_few_edits_has_a_small_patch() {
    let old: Vec<String> = (0..100_000).map(|i| format!("line {i}\n")).collect();
    let mut new = old.clone();
    new[10] = "changed\n".to_owned();
    new.remove(50_000);
    new.push("last\n".to_owned());
    let (old, new) = (old.concat().into_bytes(), new.concat().into_bytes());
    assert_eq!(stat(&old, &new), (2, 2));
    let patch = patch(b"f", Some(&old), Some(&new));
    assert!(patch.len() < 1000, "{}", patch.len());
    for program in PROGRAMS {
        assert!(apply(program, b"f", Some(&old), &patch).unwrap() == new, "{program:?}");
    }
}

/// What takes long to compare: many short lines, few of them distinct, in another order.
fn hostile() -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
    let made = |count: usize, line: &dyn Fn(usize) -> String| -> Vec<u8> {
        (0..count).flat_map(|i| line(i).into_bytes()).collect()
    };
    let noise = |seed: usize| move |i: usize| (i + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let (first, second) = (noise(1), noise(77_777));
    vec![
        ("newlines", vec![b'\n'; 10 << 20], b"a\n".repeat(5 << 20)),
        (
            "two lines",
            made(5 << 20, &|i| format!("{}\n", first(i) & 1)),
            made(5 << 20, &|i| format!("{}\n", second(i) & 1)),
        ),
        (
            "residues",
            made(2 << 20, &|i| format!("{}\n", i * 7 % 1009)),
            made(2 << 20, &|i| format!("{}\n", i * 11 % 1009)),
        ),
        ("reversed", made(1 << 20, &|i| format!("{i}\n")), made(1 << 20, &|i| format!("{}\n", (1 << 20) - i))),
        ("shuffled", made(1 << 20, &|i| format!("{}\n", first(i))), made(1 << 20, &|i| format!("{}\n", second(i)))),
        ("disjoint", made(1 << 20, &|i| format!("a{i}\n")), made(1 << 20, &|i| format!("b{i}\n"))),
        ("alike", vec![b'x'; 10 << 20], [&vec![b'x'; 10 << 20][..], b"y"].concat()),
    ]
}

#[test]
fn hostile_contents_take_no_longer_than_they_may() {
    let mut slow = Vec::new();
    for (name, old, new) in hostile() {
        let started = Instant::now();
        let (added, removed) = stat(&old, &new);
        let elapsed = started.elapsed();
        let count = |content: &[u8]| content.split_inclusive(|b| *b == b'\n').count();
        assert_eq!(count(&old) + added, count(&new) + removed, "{name}");
        println!("{name}: {elapsed:?}, +{added} -{removed}");
        if elapsed > Duration::from_secs(3) {
            slow.push((name, elapsed));
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}

#[test]
fn the_coarse_diff_of_hostile_contents_is_right() {
    let residues = |step: usize| -> Vec<u8> {
        (0..100_000_usize).flat_map(|i| format!("{}\n", i * step % 1009).into_bytes()).collect()
    };
    let (old, new) = (residues(7), residues(11));
    let patch = patch(b"f", Some(&old), Some(&new));
    let applied = apply(Program::GitApply, b"f", Some(&old), &patch);
    assert!(applied.unwrap() == new);
}

#[test]
fn the_diff_of_texts_too_long_to_be_compared_is_right() {
    let around = |middle: &[u8]| {
        let numbered = |name: &str| (0..20).map(|i| format!("{name} {i}\n")).collect::<String>().into_bytes();
        [numbered("head"), middle.repeat(MOST_LINES / 2), numbered("tail")].concat()
    };
    let (old, new) = (around(b"a\n"), around(b"b\nc\n"));
    assert_eq!(stat(&old, &new), (MOST_LINES, MOST_LINES / 2));
    let patch = patch(b"f", Some(&old), Some(&new));
    assert!(patch.windows(8).any(|text| text == b"\n head 1".as_slice()));
    assert!(apply(Program::GitApply, b"f", Some(&old), &patch).unwrap() == new);
}
