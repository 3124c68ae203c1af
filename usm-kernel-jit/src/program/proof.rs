//! What is proven about a launch, in words.

use usm_kernel_ir::inspect::Verdict;
use usm_kernel_ir::proof::Shape;
use usm_kernel_ir::{ArrayId, Refusal, Space};

use super::Program;

/// How a face of the engine says what is proven.
#[allow(missing_debug_implementations, reason = "functions of a caller")]
pub struct Words<'w> {
    /// What becomes of a launch with an index that is not proven.
    pub otherwise: &'w str,
    /// The remedy for two items that may touch one element of shared memory, in the face's
    /// language; true for memory that a barrier orders too. Empty for none.
    pub remedy: &'w dyn Fn(bool) -> String,
    /// The condition that excludes an index below this number, which is below 0.
    pub at_least: &'w dyn Fn(u64) -> String,
    /// The condition that excludes an index from this end on, in words of the kernel's source.
    pub below: &'w dyn Fn(&str) -> String,
    /// A condition on a launch in the face's language, from words of the kernel's source.
    pub spelled: &'w dyn Fn(String) -> String,
    /// The name of an element of an array, by its number.
    pub element: &'w dyn Fn(ArrayId, u64) -> String,
    /// Two arrays that share memory which the kernel writes, as a message.
    pub overlap: Option<String>,
}

/// What is proven about a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All indices are inside and no two items race, by conditions.
    Proven,
    /// The same, because all indices of this launch were computed and compared.
    Inspected,
    /// All indices are inside or checked, and two items may access one element, which indices or
    /// conditions from memory decide: the two places. Such a launch is no data race, but the order
    /// of its accesses is unknown.
    Unordered(String),
    /// The indices, or the order of items, that are not proven: place and condition.
    Open(String),
}

impl Program {
    /// What is proven about a launch. Computes all of its indices where that decides.
    pub fn answer(&self, shape: &Shape<'_>, words: &Words<'_>) -> Answer {
        let kernel = &self.kernel;
        let open = self.open(shape, true);
        let is_inspected = self.bounds.unproven(shape).is_some();
        let is_empty = shape.global.contains(&0);
        if let Some(bound) = self.claims_of(open).bounds.first() {
            let (place, name) = (kernel.locate(bound.place), &kernel.array(bound.array).name);
            let alternative = words.otherwise;
            let reason = match (bound.least_below_zero(), bound.open_end(kernel, shape)) {
                (Some(least), _) if is_least(least) => {
                    "; it may be below 0, whatever the launch: add a condition that it is not".to_owned()
                }
                (Some(least), _) => format!(
                    "; it may be {least}, whatever the launch: add a condition such as `{}`",
                    (words.at_least)(least.unsigned_abs())
                ),
                (None, Some(end)) => format!(
                    "; it may be beyond the end, whatever the launch: add a condition such as `{}`",
                    (words.spelled)((words.below)(&end))
                ),
                (None, None) => match bound.lacks(kernel, shape) {
                    Some(lacks) => format!("; proven if {}", (words.spelled)(lacks)),
                    None => "; nothing that is known before the launch bounds it".to_owned(),
                },
            };
            let index =
                format!("{place}: that the index of `{name}` is inside is not proven, {alternative}{reason}");
            return match self.order(shape, words, Answer::Proven) {
                Answer::Unordered(places) => Answer::Unordered(format!("{places}; {index}")),
                _ => Answer::Open(index),
            };
        }
        let answer = if is_inspected && !is_empty { Answer::Inspected } else { Answer::Proven };
        self.order(shape, words, answer)
    }

    /// What is proven about the order of items alone; `answer` where conditions decide.
    pub fn order(&self, shape: &Shape<'_>, words: &Words<'_>, answer: Answer) -> Answer {
        let (kernel, is_empty) = (&self.kernel, shape.global.contains(&0));
        let is_local = |array: ArrayId| matches!(kernel.array(array).space, Space::Local(_));
        let claims = match &self.claims {
            Err(refusal) => return Answer::Open(self.refusal(refusal, words)),
            Ok(claims) => claims,
        };
        let Some(race) = claims.race(shape).filter(|_| !is_empty) else {
            return words.overlap.clone().filter(|_| !is_empty).map_or(answer, Answer::Open);
        };
        match self.verdict(shape, true) {
            Some(Verdict::Free) => words.overlap.clone().map_or(Answer::Inspected, Answer::Open),
            Some(Verdict::Race(clash)) => Answer::Open(format!(
                "{}: two work-items touch one element, a race: {}{}",
                kernel.locate(race.write),
                clash.say(kernel, words.element),
                remedy(words, is_local(race.array))
            )),
            Some(Verdict::Undecided(_)) if words.overlap.is_none() && self.is_unordered(shape) => {
                let (write, other) = (kernel.locate(race.write), kernel.locate(race.other));
                let places = if write == other { write } else { format!("{write} and at {other}") };
                Answer::Unordered(format!(
                    "unordered: which of two work-items accesses an element of `{}` first, at {places}, \
                     follows from memory{}",
                    kernel.array(race.array).name,
                    remedy(words, is_local(race.array)),
                ))
            }
            verdict => {
                let lacks = race.lacks(kernel, shape);
                let condition = lacks.map(|lacks| format!("; proven if {}", (words.spelled)(lacks)));
                let doubt = match verdict {
                    Some(Verdict::Undecided(doubt)) => format!("; {}", doubt.say(kernel, words.element)),
                    _ => String::new(),
                };
                Answer::Open(format!(
                    "{}: two work-items may touch one element of `{}`, here and at {}: that they do not \
                     is not proven{}{doubt}",
                    kernel.locate(race.write),
                    kernel.array(race.array).name,
                    kernel.locate(race.other),
                    condition.unwrap_or_default()
                ))
            }
        }
    }

    /// A race that every launch has, with the remedy.
    fn refusal(&self, refusal: &Refusal, words: &Words<'_>) -> String {
        let kernel = &self.kernel;
        let other = refusal.other.filter(|other| *other != refusal.place);
        let other = other.map(|other| format!(" (see {})", kernel.locate(other)));
        let fault = match (refusal.message.split_once("; write elements"), remedy(words, true)) {
            (Some((fault, _)), remedy) if !remedy.is_empty() => format!("{fault}{remedy}"),
            _ => refusal.message.clone(),
        };
        format!("{}: {fault}{}", kernel.locate(refusal.place), other.unwrap_or_default())
    }
}

/// The remedy for two items that may touch one element, behind the fault.
fn remedy(words: &Words<'_>, has_barriers: bool) -> String {
    let remedy = (words.remedy)(has_barriers);
    if remedy.is_empty() { remedy } else { format!("; {remedy}") }
}

/// Whether a number is the least of a type, or less: nothing is known then about an index of that
/// type.
fn is_least(number: i64) -> bool {
    [i64::from(i8::MIN), i64::from(i16::MIN)].contains(&number) || number <= i64::from(i32::MIN)
}
