//! Computes the positions of everything in a timeline, as whole numbers, without drawing.

use ic_base::Seq;

/// The kind of a mark, which decides its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// A point before a dispatch, prompt or step.
    Work,
    /// A point at which a phase was left.
    Phase,
    /// A checkpoint that was asked for.
    Checkpoint,
    /// The point at which the run was created.
    Start,
    /// A rollback, which has an arrow to where the run went.
    Back,
}

impl Sort {
    pub(super) fn of(kind: &str) -> Self {
        match kind {
            "phase" => Self::Phase,
            "checkpoint" | "guard" => Self::Checkpoint,
            "created" => Self::Start,
            _ => Self::Work,
        }
    }
}

/// A point or a rollback in the drawing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TimelineMark {
    pub(super) seq: Seq,
    /// The number of rollbacks that undid it.
    pub(super) depth: usize,
    pub(super) sort: Sort,
    pub(super) phase: String,
    pub(super) title: String,
    pub(super) address: String,
    /// For a rollback, the event that the run went back to.
    pub(super) back_to: Option<Seq>,
    /// Whether it counts no longer.
    pub(super) is_over: bool,
}

/// The look of a bar, which the stylesheet defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkStyle {
    Running,
    Completed,
    Failed,
    Undone,
    Session,
}

/// A dispatch, or the session of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bar {
    pub(super) from: Seq,
    /// The event that ended it; `None` while it runs.
    pub(super) until: Option<Seq>,
    pub(super) name: String,
    pub(super) said: &'static str,
    pub(super) address: String,
    pub(super) look: MarkStyle,
}

/// A mark with its position.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlacedMark {
    pub(super) mark: TimelineMark,
    pub(super) x: usize,
    pub(super) y: usize,
    /// The position where its line begins: that of the mark before it on the same branch.
    pub(super) before: Option<(usize, usize)>,
    /// The position that its arrow points to.
    pub(super) back_to: Option<(usize, usize)>,
}

/// A bar with its position.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlacedBar {
    pub(super) bar: Bar,
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
}

/// A phase, from its first mark to its last one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Track {
    pub(super) name: String,
    pub(super) x: usize,
    pub(super) width: usize,
    /// Whether all of its marks were undone.
    pub(super) is_over: bool,
}

/// Everything in the drawing, with its position.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Drawing {
    /// Whether the drawing may shrink to the width of the page.
    pub(super) fits: bool,
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) tracks: Vec<Track>,
    pub(super) marks: Vec<PlacedMark>,
    pub(super) bars: Vec<PlacedBar>,
    /// The number of bars that are not drawn, because no lane is free.
    pub(super) left_out: usize,
}

/// With few marks the drawing is as wide as a page. With many, each column has the smallest width, and the drawing is wider than the page.
const PAGE: usize = 1_090;
const NARROWEST: usize = 44;
const WIDEST: usize = 104;
/// The heights of a branch and of a lane, and the margin around the drawing.
const BRANCH: usize = 34;
const LANE: usize = 26;
const MARGIN: usize = 26;
/// The height of the line of what is in force: below the phases, with room for arrows above it.
const MAIN: usize = 84;
/// The deepest branch: branches of deeper ones are drawn at this depth.
const DEEPEST: usize = 4;
/// The most lanes: bars that would need more are counted.
const LANES: usize = 10;
/// The shortest bar, so that a pointer can hit it.
const SHORTEST: usize = 22;

/// Computes the positions of the marks, oldest first, and of the bars below them.
pub(super) fn laid_out(marks: Vec<TimelineMark>, bars: Vec<Bar>, sessions: Vec<Bar>) -> Drawing {
    let columns = marks.len().max(1);
    let column = ((PAGE - 2 * MARGIN) / (columns + 1)).clamp(NARROWEST, WIDEST);
    let seqs: Vec<Seq> = marks.iter().map(|mark| mark.seq).collect();
    let deepest = marks.iter().map(|mark| mark.depth.min(DEEPEST)).max().unwrap_or(0);
    // After the newest mark there is room for bars of work that still runs.
    let width = 2 * MARGIN + (columns + 1) * column;
    let tracks = tracks(&marks, column);
    let marks = placed(marks, column);
    let top = MAIN + deepest * BRANCH + BRANCH / 2 + 10;
    let mut lanes = Lanes { ends: Vec::new(), top };
    let mut placed_bars = Vec::new();
    let mut left_out = 0;
    for group in [sessions, bars] {
        // Sessions come first and have the upper lanes to themselves: bars of work begin below all of them.
        let from = lanes.ends.len();
        for bar in group {
            let (x, end) = span(&seqs, &bar, (width, column));
            match lanes.take(from, x, end) {
                Some(y) => placed_bars.push(PlacedBar { bar, x, y, width: end - x }),
                None => left_out += 1,
            }
        }
    }
    let height = top + lanes.ends.len() * LANE + 8;
    let fits = column > NARROWEST;
    Drawing { fits, width, height, tracks, marks, bars: placed_bars, left_out }
}

/// The middle of a column.
fn x_of(index: usize, column: usize) -> usize {
    MARGIN + column / 2 + index * column
}

fn y_of(depth: usize) -> usize {
    MAIN + depth.min(DEEPEST) * BRANCH
}

fn placed(marks: Vec<TimelineMark>, width: usize) -> Vec<PlacedMark> {
    let places: Vec<(Seq, usize, usize, usize)> = marks
        .iter()
        .enumerate()
        .map(|(column, mark)| (mark.seq, mark.depth, x_of(column, width), y_of(mark.depth)))
        .collect();
    let before = |column: usize, depth: usize| {
        // The line of a mark begins at the nearest mark before it that is no deeper: on its own branch, or where the branch begins. After a
        // rollback, the run continues from the mark that it went to.
        let older = places[..column].iter().rev();
        older.clone().find(|(_, other, ..)| *other <= depth).map(|(_, _, x, y)| (*x, *y))
    };
    // An arrow points to the last mark before the target event that is no deeper than the rollback itself.
    let target = |seq: Seq, depth: usize| {
        let stands = places.iter().rev().find(|(at, other, ..)| *at <= seq && *other <= depth);
        stands.map(|(_, _, x, y)| (*x, *y))
    };
    let place = |(column, mark): (usize, TimelineMark)| PlacedMark {
        x: x_of(column, width),
        y: y_of(mark.depth),
        before: before(column, mark.depth),
        back_to: mark.back_to.and_then(|seq| target(seq, mark.depth)),
        mark,
    };
    marks.into_iter().enumerate().map(place).collect()
}

/// The phases: marks in a row with the same phase.
fn tracks(marks: &[TimelineMark], width: usize) -> Vec<Track> {
    let mut tracks: Vec<Track> = Vec::new();
    for (column, mark) in marks.iter().enumerate() {
        let x = MARGIN + column * width;
        match tracks.last_mut().filter(|track| track.name == mark.phase) {
            Some(track) => {
                track.width += width;
                track.is_over &= mark.is_over;
            }
            None => tracks.push(Track { name: mark.phase.clone(), x, width, is_over: mark.is_over }),
        }
    }
    // The last phase reaches over the free column at the right, into which bars of running work extend.
    if let Some(last) = tracks.last_mut() {
        last.width += width;
    }
    tracks
}

/// The left and right end of a bar.
fn span(seqs: &[Seq], bar: &Bar, (width, column): (usize, usize)) -> (usize, usize) {
    // An event after a mark lies between that mark and the next one.
    let index = |seq: Seq| seqs.partition_point(|at| *at <= seq);
    let edge = |index: usize| if index == 0 { MARGIN } else { x_of(index - 1, column) + 6 };
    let from = edge(index(bar.from));
    // Work that still runs reaches to the edge, past the newest mark.
    let until = bar.until.map_or(width - MARGIN, |end| edge(index(end)).max(from) + column - 12);
    (from, until.min(width - MARGIN).max(from + SHORTEST))
}

/// The lanes of bars, each with the right end of its last bar.
struct Lanes {
    ends: Vec<usize>,
    top: usize,
}

impl Lanes {
    /// The height of the first free lane from `first` on; `None` if all are taken and no more are allowed.
    fn take(&mut self, first: usize, from: usize, until: usize) -> Option<usize> {
        const GAP: usize = 4;
        let free = (first..self.ends.len()).find(|lane| self.ends[*lane] + GAP <= from);
        let lane = match free {
            Some(lane) => lane,
            None if self.ends.len() < LANES => {
                self.ends.push(0);
                self.ends.len() - 1
            }
            None => return None,
        };
        self.ends[lane] = until;
        Some(self.top + lane * LANE)
    }
}

#[cfg(test)]
mod tests {
    use super::{Bar, LANES, MAIN, MarkStyle, Sort, TimelineMark, laid_out};

    fn mark(seq: i64, depth: usize, phase: &str) -> TimelineMark {
        let sort = Sort::Work;
        let (phase, title, address) = (phase.to_owned(), String::new(), String::new());
        TimelineMark { seq, depth, sort, phase, title, address, back_to: None, is_over: depth > 0 }
    }

    fn bar(from: i64, until: Option<i64>) -> Bar {
        let (name, address) = (String::new(), String::new());
        Bar { from, until, name, said: "running", address, look: MarkStyle::Running }
    }

    #[test]
    fn an_attempt_that_was_taken_back_lies_below_and_its_arrow_leads_back() {
        let back = TimelineMark { sort: Sort::Back, back_to: Some(5), ..mark(9, 0, "a") };
        let marks = vec![mark(1, 0, "a"), mark(5, 0, "a"), mark(6, 1, "a"), mark(8, 1, "b"), back, mark(10, 0, "a")];
        let drawing = laid_out(marks, Vec::new(), Vec::new());
        let y: Vec<bool> = drawing.marks.iter().map(|mark| mark.y == MAIN).collect();
        assert_eq!(y, [true, true, false, false, true, true]);
        let at = |index: usize| (drawing.marks[index].x, drawing.marks[index].y);
        assert_eq!(drawing.marks[4].back_to, Some(at(1)));
        assert_eq!(drawing.marks[2].before, Some(at(1)), "a branch begins where it left");
        assert_eq!(drawing.marks[3].before, Some(at(2)));
        assert_eq!(drawing.marks[4].before, Some(at(1)), "what stands continues above the branch");
        let names: Vec<(&str, bool)> =
            drawing.tracks.iter().map(|track| (track.name.as_str(), track.is_over)).collect();
        assert_eq!(names, [("a", false), ("b", true), ("a", false)]);
    }

    #[test]
    fn no_two_bars_overlap_and_those_without_a_lane_are_counted() {
        let marks: Vec<TimelineMark> = (0..8).map(|n| mark(n * 10, 0, "a")).collect();
        let bars: Vec<Bar> = (0..40).map(|n| bar(n, (n % 3 > 0).then_some(n + 15))).collect();
        let drawing = laid_out(marks, bars, vec![bar(0, None)]);
        assert_eq!(drawing.bars.len() + drawing.left_out, 41);
        assert!(drawing.left_out > 0);
        for (index, one) in drawing.bars.iter().enumerate() {
            assert!(one.x + one.width <= drawing.width && one.y < drawing.height, "{one:?}");
            for other in &drawing.bars[..index] {
                let apart = one.y != other.y || one.x >= other.x + other.width || other.x >= one.x + one.width;
                assert!(apart, "{one:?} lies over {other:?}");
            }
        }
        let lanes: std::collections::BTreeSet<usize> = drawing.bars.iter().map(|bar| bar.y).collect();
        assert!(lanes.len() <= LANES);
    }

    #[test]
    fn a_run_with_nothing_in_it_can_be_drawn() {
        let drawing = laid_out(Vec::new(), vec![bar(3, None)], Vec::new());
        assert!(drawing.width > 0 && drawing.marks.is_empty() && drawing.bars.len() == 1);
    }
}
