//! Where everything of a timeline lies: whole numbers, decided without a drawing.

use ic_base::Seq;

/// What a mark stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// Work begins there.
    Work,
    /// A phase was left.
    Phase,
    /// It was asked for by name.
    Checkpoint,
    /// The run begins.
    Start,
    /// The run went back.
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

/// A point or a rollback, as it is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) seq: Seq,
    /// By how many rollbacks it was undone.
    pub(super) depth: usize,
    pub(super) sort: Sort,
    pub(super) phase: String,
    pub(super) title: String,
    pub(super) address: String,
    /// Of a rollback, the event that the run went back to.
    pub(super) back_to: Option<Seq>,
    /// It counts no longer.
    pub(super) is_over: bool,
}

/// How a bar looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Running,
    Completed,
    Failed,
    Undone,
    Session,
}

/// Work, or a session of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bar {
    pub(super) from: Seq,
    /// `None`: it runs.
    pub(super) until: Option<Seq>,
    pub(super) name: String,
    pub(super) said: &'static str,
    pub(super) address: String,
    pub(super) look: Look,
}

/// A mark at its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlacedMark {
    pub(super) mark: Mark,
    pub(super) x: usize,
    pub(super) y: usize,
    /// Where its branch comes from: the mark before it on the same way.
    pub(super) before: Option<(usize, usize)>,
    /// Where its arrow leads.
    pub(super) back_to: Option<(usize, usize)>,
}

/// A bar at its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlacedBar {
    pub(super) bar: Bar,
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
}

/// A phase, from its first mark to its last.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Track {
    pub(super) name: String,
    pub(super) x: usize,
    pub(super) width: usize,
    /// All of it was undone.
    pub(super) is_over: bool,
}

/// Everything at its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Drawing {
    /// It may be drawn as small as a page is wide.
    pub(super) fits: bool,
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) tracks: Vec<Track>,
    pub(super) marks: Vec<PlacedMark>,
    pub(super) bars: Vec<PlacedBar>,
    /// Bars for which there was no lane.
    pub(super) left_out: usize,
}

/// A drawing of few marks is as wide as a page; of many, a column is as narrow as this, and the drawing is as wide as it must be.
const PAGE: usize = 1_090;
const NARROWEST: usize = 44;
const WIDEST: usize = 104;
/// The room of a branch and of a lane, and what is around all.
const BRANCH: usize = 34;
const LANE: usize = 26;
const MARGIN: usize = 26;
/// The middle of what stands: below the phases, with room for arrows above it.
const MAIN: usize = 84;
/// Branches of branches lie no deeper than this.
const DEEPEST: usize = 4;
/// More lanes are counted only.
const LANES: usize = 10;
/// A bar is never so short that it cannot be hit.
const SHORTEST: usize = 22;

/// Places the marks, oldest first, and the bars below them.
pub(super) fn laid_out(marks: Vec<Mark>, bars: Vec<Bar>, sessions: Vec<Bar>) -> Drawing {
    let columns = marks.len().max(1);
    let column = ((PAGE - 2 * MARGIN) / (columns + 1)).clamp(NARROWEST, WIDEST);
    let seqs: Vec<Seq> = marks.iter().map(|mark| mark.seq).collect();
    let deepest = marks.iter().map(|mark| mark.depth.min(DEEPEST)).max().unwrap_or(0);
    // After the newest mark there is room for what it began.
    let width = 2 * MARGIN + (columns + 1) * column;
    let tracks = tracks(&marks, column);
    let marks = placed(marks, column);
    let top = MAIN + deepest * BRANCH + BRANCH / 2 + 10;
    let mut lanes = Lanes { ends: Vec::new(), top };
    let mut placed_bars = Vec::new();
    let mut left_out = 0;
    for group in [sessions, bars] {
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

/// The middle of a column of this width.
fn x_of(index: usize, column: usize) -> usize {
    MARGIN + column / 2 + index * column
}

fn y_of(depth: usize) -> usize {
    MAIN + depth.min(DEEPEST) * BRANCH
}

fn placed(marks: Vec<Mark>, width: usize) -> Vec<PlacedMark> {
    let places: Vec<(Seq, usize, usize, usize)> = marks
        .iter()
        .enumerate()
        .map(|(column, mark)| (mark.seq, mark.depth, x_of(column, width), y_of(mark.depth)))
        .collect();
    let before = |column: usize, depth: usize| {
        // A branch continues at its own depth; its first mark comes from what it left. After a rollback the run continues from where it went.
        let older = places[..column].iter().rev();
        older.clone().find(|(_, other, ..)| *other <= depth).map(|(_, _, x, y)| (*x, *y))
    };
    // What stands continues from there: a mark that went back itself is where it went back from.
    let target = |seq: Seq, depth: usize| {
        let stands = places.iter().rev().find(|(at, other, ..)| *at <= seq && *other <= depth);
        stands.map(|(_, _, x, y)| (*x, *y))
    };
    let place = |(column, mark): (usize, Mark)| PlacedMark {
        x: x_of(column, width),
        y: y_of(mark.depth),
        before: before(column, mark.depth),
        back_to: mark.back_to.and_then(|seq| target(seq, mark.depth)),
        mark,
    };
    marks.into_iter().enumerate().map(place).collect()
}

/// Runs of marks in one phase.
fn tracks(marks: &[Mark], width: usize) -> Vec<Track> {
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
    if let Some(last) = tracks.last_mut() {
        last.width += width;
    }
    tracks
}

/// From where to where a bar reaches.
fn span(seqs: &[Seq], bar: &Bar, (width, column): (usize, usize)) -> (usize, usize) {
    // What began after a mark lies between it and the next one.
    let index = |seq: Seq| seqs.partition_point(|at| *at <= seq);
    let edge = |index: usize| if index == 0 { MARGIN } else { x_of(index - 1, column) + 6 };
    let from = edge(index(bar.from));
    let until = bar.until.map_or(width - MARGIN, |end| edge(index(end)).max(from) + column - 12);
    (from, until.min(width - MARGIN).max(from + SHORTEST))
}

/// Lanes, each with where its last bar ends.
struct Lanes {
    ends: Vec<usize>,
    top: usize,
}

impl Lanes {
    /// The height of the first lane from `first` on that is free there; `None`: there are too many.
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
    use super::{Bar, LANES, Look, MAIN, Mark, Sort, laid_out};

    fn mark(seq: i64, depth: usize, phase: &str) -> Mark {
        let sort = Sort::Work;
        let (phase, title, address) = (phase.to_owned(), String::new(), String::new());
        Mark { seq, depth, sort, phase, title, address, back_to: None, is_over: depth > 0 }
    }

    fn bar(from: i64, until: Option<i64>) -> Bar {
        let (name, address) = (String::new(), String::new());
        Bar { from, until, name, said: "running", address, look: Look::Running }
    }

    #[test]
    fn an_attempt_that_was_taken_back_lies_below_and_its_arrow_leads_back() {
        let back = Mark { sort: Sort::Back, back_to: Some(5), ..mark(9, 0, "a") };
        let marks =
            vec![mark(1, 0, "a"), mark(5, 0, "a"), mark(6, 1, "a"), mark(8, 1, "b"), back, mark(10, 0, "a")];
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
        let marks: Vec<Mark> = (0..8).map(|n| mark(n * 10, 0, "a")).collect();
        let bars: Vec<Bar> = (0..40).map(|n| bar(n, (n % 3 > 0).then_some(n + 15))).collect();
        let drawing = laid_out(marks, bars, vec![bar(0, None)]);
        assert_eq!(drawing.bars.len() + drawing.left_out, 41);
        assert!(drawing.left_out > 0);
        for (index, one) in drawing.bars.iter().enumerate() {
            assert!(one.x + one.width <= drawing.width && one.y < drawing.height, "{one:?}");
            for other in &drawing.bars[..index] {
                let apart =
                    one.y != other.y || one.x >= other.x + other.width || other.x >= one.x + one.width;
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
