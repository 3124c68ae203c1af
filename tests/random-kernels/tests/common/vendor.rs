//! A vendor's compiler and runtime in a child process, which may die of a random program. The
//! program is then told by its name, and the others still run.
//!
//! One child serves many programs, because a runtime takes long to start. After a death a new child
//! takes the rest: in halves, if it died while it built a module, until one program is left.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Programs of one module: a build takes long, whatever its size.
pub(crate) const MODULE: usize = 100;

/// The environment variable of the child: whether it is one, and the programs of which it dies, as
/// if the compiler did.
const CHILD: &str = "USM_RANDOM_CHILD";

/// What begins a line of the child, between those of the test harness.
const MARK: &str = "@vendor ";

/// The number of programs, of so many, of which the compiler may die. Of more the test fails.
pub(crate) const fn most_deaths(programs: usize) -> usize {
    2 + programs / 100
}

/// A child, started when it is needed.
pub(crate) struct Vendor {
    /// The test of this program that is the child.
    test: &'static str,
    /// The programs of which it dies, for tests of this file.
    dies_of: &'static [&'static str],
    running: Option<Running>,
}

struct Running {
    child: Child,
    input: ChildStdin,
    lines: BufReader<ChildStdout>,
}

/// What the child did with programs.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The number of programs with the expected results.
    pub(crate) same: usize,
    /// The other results, as text.
    pub(crate) differs: Vec<String>,
    /// The programs of which it died, by name.
    pub(crate) died: Vec<String>,
}

impl Done {
    pub(crate) fn programs(&self) -> usize {
        self.same + self.differs.len() + self.died.len()
    }

    /// Refuses more deaths than [`most_deaths`].
    ///
    /// # Errors
    /// The names of all.
    pub(crate) fn check_deaths(&self, target: &str) -> Result<(), String> {
        let (all, died) = (self.programs(), self.died.len());
        let most = most_deaths(all);
        if died <= most {
            return Ok(());
        }
        let names = self.died.join(", ");
        Err(format!(
            "{target}: the vendor's compiler died of {died} of {all} programs, at most {most} may be: {names}"
        ))
    }
}

impl Vendor {
    pub(crate) const fn new(test: &'static str, dies_of: &'static [&'static str]) -> Self {
        Self { test, dies_of, running: None }
    }

    /// Lets a child judge the programs of a set, all but those of these names.
    ///
    /// # Errors
    /// The reason why the child has no device.
    pub(crate) fn judge(&mut self, target: &str, set: &str, leave_out: &[&str]) -> Result<Done, String> {
        let names = self.names(target, set)?;
        let all: Vec<usize> =
            (0..names.len()).filter(|at| !leave_out.contains(&names[*at].as_str())).collect();
        let mut left: Vec<Vec<usize>> = all.chunks(MODULE).rev().map(<[usize]>::to_vec).collect();
        let mut done = Done::default();
        while let Some(asked) = left.pop() {
            let mut open = asked.clone();
            let mut at_work = None;
            let ended = self.ask(target, set, &asked, &mut |said| {
                let (word, rest) = said.split_once(' ').unwrap_or((said, ""));
                let (at, text) = rest.split_once(' ').unwrap_or((rest, ""));
                let Ok(at) = at.parse::<usize>() else { return };
                match word {
                    "runs" => at_work = Some(at),
                    "same" => done.same += 1,
                    _ => done.differs.push(text.to_owned()),
                }
                if word != "runs" {
                    at_work = None;
                    open.retain(|other| *other != at);
                }
            });
            if ended {
                continue;
            }
            let guilty = at_work.or((open.len() == 1).then(|| open[0]));
            if let Some(at) = guilty {
                done.died.push(names[at].clone());
                open.retain(|other| *other != at);
                left.extend((!open.is_empty()).then_some(open));
            } else {
                let second = open.split_off(open.len() / 2);
                left.extend([second, open]);
            }
        }
        Ok(done)
    }

    /// The names of a set's programs.
    fn names(&mut self, target: &str, set: &str) -> Result<Vec<String>, String> {
        let (mut names, mut missing) = (Vec::new(), None);
        let ended = self.ask(target, set, &[], &mut |said| match said.split_once(' ') {
            Some(("name", name)) => names.push(name.to_owned()),
            Some(("missing", reason)) => missing = Some(reason.to_owned()),
            _ => {}
        });
        match missing {
            Some(reason) => Err(reason),
            None if ended => Ok(names),
            None => Err("the child that opens the device ended".to_owned()),
        }
    }

    /// Asks for programs, and passes on each line of the answer. False if the child ended before
    /// its answer did.
    fn ask(&mut self, target: &str, set: &str, programs: &[usize], hear: &mut dyn FnMut(&str)) -> bool {
        let running = self.running.get_or_insert_with(|| Running::start(self.test, self.dies_of));
        let numbers: Vec<String> = programs.iter().map(usize::to_string).collect();
        let asked = writeln!(running.input, "{target}\t{set}\t{}", numbers.join(" "));
        let mut line = String::new();
        while asked.is_ok() {
            line.clear();
            match running.lines.read_line(&mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            match line.split_once(MARK).map(|(_, said)| said.trim_end()) {
                Some("done") => return true,
                Some(said) => hear(said),
                None => {}
            }
        }
        if let Some(mut ended) = self.running.take() {
            let _ = ended.child.wait();
        }
        false
    }
}

impl Drop for Vendor {
    fn drop(&mut self) {
        if let Some(Running { mut child, input, lines }) = self.running.take() {
            // The child ends when its input does.
            drop((input, lines));
            let _ = child.wait();
        }
    }
}

impl Running {
    fn start(test: &str, dies_of: &[&str]) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", test, "--nocapture"]).env(CHILD, dies_of.join(","));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("this program runs again");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Self { child, input, lines: BufReader::new(output) }
    }
}

/// The work of a child, for programs of a set.
pub(crate) trait Work {
    /// The names of the set's programs, or why there is no device for this target.
    fn names(&mut self, target: &str, set: &str) -> Result<Vec<String>, String>;

    /// Builds one module of these programs of the set, and returns what runs one of them: a text if
    /// its results are not the expected ones.
    fn build(
        &mut self,
        target: &str,
        set: &str,
        programs: &[usize],
    ) -> Box<dyn FnMut(usize) -> Option<String> + '_>;
}

/// Serves a parent, up to the end of this process, if it is a child.
pub(crate) fn serve_as_child(mut work: impl Work) {
    let Ok(dies_of) = std::env::var(CHILD) else { return };
    let dies_of: Vec<&str> = dies_of.split(',').collect();
    for line in std::io::stdin().lines() {
        let line = line.expect("text of the parent");
        let mut words = line.split('\t');
        let [target, set, numbers] = [(); 3].map(|()| words.next().unwrap_or_default());
        let programs: Vec<usize> = numbers.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let names = match work.names(target, set) {
            Ok(names) => names,
            Err(reason) => {
                say(format_args!("missing {reason}"));
                say("done");
                continue;
            }
        };
        if programs.is_empty() {
            names.iter().for_each(|name| say(format_args!("name {name}")));
        } else {
            if programs.iter().any(|at| dies_of.contains(&names[*at].as_str())) {
                std::process::abort();
            }
            let mut run = work.build(target, set, &programs);
            for at in &programs {
                say(format_args!("runs {at}"));
                match run(*at) {
                    None => say(format_args!("same {at}")),
                    Some(text) => say(format_args!("differs {at} {}", text.replace('\n', " "))),
                }
            }
        }
        say("done");
    }
    std::process::exit(0);
}

fn say(text: impl core::fmt::Display) {
    println!("\n{MARK}{text}");
    let _ = std::io::stdout().flush();
}
